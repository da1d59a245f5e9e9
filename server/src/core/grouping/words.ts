/**
 * The words and codes that the grouping knows. Codes separate causes; words in front of a value say whether
 * the value is a code, a name of the program (field, constraint), or data.
 */

const toSet = (text: string): ReadonlySet<string> => new Set(text.split(/\s+/).filter((word) => word !== ''))

/** Words after which a number is a code: `exit status 137`, `errno: 111`. In lower case. */
export const announcesCode =
  toSet(`status code reason statuscode status_code errorcode error_code errcode error err errno
  winerror hresult exit exitcode exit_code signal sqlstate sqlcode rc fehler fehlercode erreur codigo código код
  ошибка mqrc retcode`)

/** Words after which a number is a code only if it can be a status of HTTP: `HTTP 503`, `returned 404`. */
export const announcesHttpStatus = toSet(`http https response responded returned returns answered got received
  replied antwortete status_line`)

/** Words between a code and the word that announces it: `error number 1205`, `responded with 503`. */
export const beforeCode = toSet('number no nr num with of is was a an the code status')

/** Keys and words whose value is a code although it has no digits: `code: 'invalid_type'`, `type=missing`. */
export const codeKeys =
  toSet(`code errorcode error_code errcode statuscode status_code httpstatus type error_type errortype status reason state kind
  expected received keyword rule violation condition error exception errno name_of_error classification
  failurecode failure_code declinecode decline_code subcode sub_code`)

/** Words in front of a name that the program defines. Such a name is a code: it separates causes. */
export const namesProgram = toSet(`field fields property properties column columns constraint relation table
  parameter param params argument arguments attribute reading path loc instancepath spalte feld eigenschaft tabelle
  champ colonne columna campo поле столбец`)

/**
 * Words in front of a name that the program may define. The name stays in the message, where it may turn out
 * as data.
 */
export const mayNameProgram =
  toSet(`key index function method class type variable header option schema module setting
  identifier member element tag enum flag required missing undefined collection view trigger sequence procedure role
  permission scope claim placeholder bean operation operator dependency`)

/** Names of types, which messages quote. */
export const typeNames =
  toSet(`int integer long short byte float double decimal number str string text char bool boolean bytes list tuple
  set dict map array object function symbol bigint null none nil NoneType undefined date datetime timestamp uuid
  uint int32 int64 u32 u64 i32 i64 f64 struct slice interface`)

/** Keys whose quoted value is text to be read like the message itself. */
export const textKeys = toSet(`message msg detail details title error err error_description description reason
  cause text summary fault faultstring exception errormessage error_message because meldung fehler`)

export const httpMethods = toSet('GET POST PUT PATCH DELETE HEAD OPTIONS TRACE CONNECT')

export const grpcStatuses =
  toSet(`CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS
  PERMISSION_DENIED RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE
  DATA_LOSS UNAUTHENTICATED Canceled Unknown InvalidArgument DeadlineExceeded NotFound AlreadyExists
  PermissionDenied ResourceExhausted FailedPrecondition Aborted OutOfRange Unimplemented Internal Unavailable
  DataLoss Unauthenticated Cancelled`)

export const errnoNames = toSet(`E2BIG EACCES EADDRINUSE EADDRNOTAVAIL EAFNOSUPPORT EAGAIN EAI_AGAIN EAI_FAIL
  EAI_NONAME EALREADY EBADF EBADMSG EBUSY ECANCELED ECHILD ECONNABORTED ECONNREFUSED ECONNRESET EDEADLK EDESTADDRREQ
  EDOM EDQUOT EEXIST EFAULT EFBIG EHOSTDOWN EHOSTUNREACH EIDRM EILSEQ EINPROGRESS EINTR EINVAL EIO EISCONN EISDIR
  ELOOP EMFILE EMLINK EMSGSIZE EMULTIHOP ENAMETOOLONG ENETDOWN ENETRESET ENETUNREACH ENFILE ENOBUFS ENODATA ENODEV
  ENOENT ENOEXEC ENOLCK ENOLINK ENOMEM ENOMSG ENOPROTOOPT ENOSPC ENOSR ENOSTR ENOSYS ENOTCONN ENOTDIR ENOTEMPTY
  ENOTFOUND ENOTRECOVERABLE ENOTSOCK ENOTSUP ENOTTY ENXIO EOPNOTSUPP EOVERFLOW EOWNERDEAD EPERM EPIPE EPROTO
  EPROTONOSUPPORT EPROTOTYPE ERANGE EROFS ESHUTDOWN ESOCKETTIMEDOUT ESPIPE ESRCH ESTALE ETIME ETIMEDOUT ETIMEOUT
  ETXTBSY EWOULDBLOCK EXDEV ECONNECTION EAUTH EENVELOPE EMESSAGE EPARSE EREQUEST ELOGIN`)

/** First words of the reason phrases of HTTP: `502 Bad Gateway` is a status, `502 items` is not. */
export const statusPhrases =
  toSet(`Bad Unauthorized Payment Forbidden Not Method Proxy Request Conflict Gone Length
  Precondition Payload Content URI Unsupported Range Expectation Misdirected Unprocessable Locked Failed Too Upgrade
  Unavailable Internal Service Gateway HTTP Variant Insufficient Loop Network Moved Found See Temporary Permanent
  Multiple Unknown Entity Client Origin`)

/**
 * Vendors' codes: `ORA-01017`, `E11000`, `AADSTS50076`, `SQL0911N`. Other capitals with a number, such as
 * `INV-00017`, are ids of data.
 */
export const vendorCode =
  /^(?:(?:ORA|TNS|PLS|SP2|DPY|DPI|RMAN|IMP|EXP|LRM|DRG|PG|MY|MYSQL|JDBC|SQL|DB2|ERR|ERROR|E|MSG|KAFKA|SAP|SMTP|LDAP)-[0-9]{3,6}|E[0-9]{4,5}|(?:AADSTS|HHH|HV|ISPN|JBAS|ELY|IJ|AMQ|MQRC|JMSWMQ|JMSCC|SRVE|DSRA|WFLY[A-Z]{0,6}|CWWK[A-Z]|CWPKI|ARJUNA|SQL|MSB|ERR|EVT)[0-9]{4,7}[A-Z]?)$/

/** Codes of tools whose letters are too few to tell them from an id: `NU1603`, `CS8602`. */
export const toolCode = /^(?:UT|NU|CS|TS|CA|IDX)[0-9]{4,5}[A-Z]?$/

/** Words with digits that are words: `sha256`, `oauth2`. In lower case. */
export const wordsWithDigits =
  toSet(`base64 base32 oauth2 oauth1 http2 http3 h2 ipv4 ipv6 sha1 sha256 sha384 sha512 md5
  utf8 utf16 utf-8 utf-16 iso8859 x509 s3 ec2 log4j log4j2 k8s i18n l10n p12 pkcs12 pkcs8 pkcs1 pkcs7 psycopg2 psycopg3
  asn1 rs256 hs256 es256 ps256 tls1 sslv3 tlsv1 mp3 mp4 h264 win32 x86 amd64 arm64 int8 int16 int32 int64 uint8 uint16
  uint32 uint64 float32 float64 i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 crc32 adler32 aes128 aes256 argon2 bzip2 gzip2
  db2 neo4j web3 v1 v2 v3 v4 v5 v6 v7 v8 v9 oci8 mysql2 mysqli2 pg8000 jdk8 java8 es6 html5 css3 e2e b2b b2c c2 level1
  iso8601 rfc3339 sec1 ssh2 ldap3 sqlite3 boto3 urllib3 aio2 psr7 psr4 utf32 3rd 2fa 3ds 1st 2nd h1 h3`)

/** Units of time, size and share, in lower case. */
export const units =
  toSet(`ms msec msecs millis millisecond milliseconds millisecond(s) us µs microsecond microseconds
  ns nanoseconds s sec secs second seconds second(s) m min mins minute minutes minute(s) h hr hrs hour hours hour(s) d
  day days day(s) week weeks b byte bytes byte(s) kb mb gb tb kib mib gib tib kbytes mbytes % percent
  sekunde sekunden minuten stunden tage millisekunden`)

/** Endings of file names. */
export const fileEnding =
  /\.(?:pdf|png|jpe?g|gif|svg|webp|csv|tsv|json|ndjson|jsonl|xml|xsd|ya?ml|txt|log|html?|zip|gz|tgz|tar|bz2|xz|7z|rar|parquet|avro|orc|xlsx?|docx?|pptx?|eml|msg|mp[34]|mov|avi|wav|dat|bin|tmp|bak|sql|db|sqlite|pem|crt|cer|key|p12|pfx|jks|edi|xlsm|ics|vcf|psd|ai|tiff?|bmp|heic|dll|exe|so|jar|war|class|py|rb|js|mjs|cjs|ts|tsx|jsx|go|rs|java|kt|php|cs|cpp|c|h|hpp|map|properties|conf|cfg|ini|toml|lock|sqm|mapfile|rts|core|cab)$/i

/** The last labels of host names. */
export const hostEnding =
  /\.(?:com|net|org|io|dev|app|cloud|local|localdomain|internal|intern|lan|corp|home|example|test|invalid|svc|cluster|consul|aws|info|biz|eu|de|at|ch|fr|uk|us|cn|jp|ru|br|in|nl|se|no|dk|fi|pl|it|es|pt|mx|hk|kr|tw|au|nz|ca|om|mx|co|me|tv|ai|gov|edu|mil|int|arpa|onion|zone|host|site|online|tech|store|shop|xyz)(?::[0-9]{1,5})?$/i

/** SQLSTATEs without a letter. Others are recognised by their letter: 40P01. */
export const sqlStates = toSet(`08000 08001 08003 08004 08006 08007 21000 22001 22003 22007 22008 22012 22023
  23000 23001 23502 23503 23505 23514 24000 25000 25001 25006 26000 28000 34000 40000 40001 40002 42000 42501 42601
  42602 42622 42701 42702 42703 42704 42803 42804 42846 42883 53000 53100 53200 53300 53400 54000 55000 55006 57000
  57014 58000 58030`)
