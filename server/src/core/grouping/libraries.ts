/** Recognises functions of libraries by their names. */

const java =
  /^(?:java|javax|jakarta|jdk|sun|com\.sun|kotlin|kotlinx|scala|groovy|clojure|android|androidx|org\.(?:springframework|apache|hibernate|postgresql|eclipse|jboss|slf4j|junit|glassfish|jetbrains|aspectj|elasticsearch|opensearch|flywaydb|redisson|quartz|mybatis|jooq|yaml|bouncycastle|json|h2|mariadb|sqlite|mongodb|bson|codehaus|wildfly|infinispan|keycloak|thymeleaf|reactivestreams|axonframework|camunda|jdbi|neo4j|rocksdb|xerial|jctools|mockito|testcontainers|asynchttpclient|ehcache|jsoup|openapitools|zalando)|com\.(?:mysql|microsoft|zaxxer|fasterxml|google|amazonaws|rabbitmq|mongodb|netflix|datastax|hazelcast|github|squareup|azure|stripe|atomikos|ibm|oracle|couchbase|ctc|alibaba|typesafe|lightbend|twitter|thoughtworks|jayway|nimbusds|auth0|newrelic|datadog|mchange|clickhouse|solacesystems|tibco|sap\.conn|vaadin|codahale)|io\.(?:netty|lettuce|reactivex|quarkus|micronaut|vertx|micrometer|opentelemetry|opentracing|grpc|github|confluent|projectreactor|jsonwebtoken|swagger|undertow|dropwizard|ktor|prometheus|sentry|temporal|nats|r2dbc|smallrye|axoniq|debezium|awspring|jaegertracing|kubernetes|fabric8|minio)|software\.amazon|oracle|redis\.clients|reactor|rx|akka|play|okhttp3|okio|retrofit2|feign|brave|zipkin2|net\.(?:bytebuddy|sf|javacrumbs|logstash|spy)|co\.(?:elastic|paralleluniverse)|ch\.qos|liquibase|javassist|cats|zio|monix|slick|doobie|sttp|lombok|dev\.failsafe|graphql|de\.codecentric|weblogic|no\.nav\.common)(?:\.|$)/

export function isJavaLibrary(type: string): boolean {
  return java.test(type)
}

const dotnet =
  /^(?:System|Microsoft|NServiceBus|MassTransit|Newtonsoft|Npgsql|Polly|Dapper|Azure|Amazon|RabbitMQ|Confluent|Autofac|MediatR|Hangfire|Quartz|Serilog|StackExchange|Grpc|Google|MongoDB|MySql|MySqlConnector|Oracle|NLog|log4net|FluentValidation|AutoMapper|Castle|NHibernate|Rebus|Elastic|Elasticsearch|Nest|OpenTelemetry|Refit|RestSharp|Flurl|Stripe|Twilio|SendGrid|Marten|Wolverine|EasyNetQ|Orleans|Akka|Proto|Dapr|Ocelot|IdentityServer4|Duende|Swashbuckle|Moq|Xunit|NUnit|FSharp|ServiceStack|Lamar|StructureMap|SimpleInjector|Ninject|Topshelf|Scrutor|Sentry|Datadog|NewRelic|Minio|Cassandra|Couchbase|Interop|Internal|Snowflake|KafkaFlow|Silverback|Brighter|Paramore)[.+]/

export function isDotnetLibrary(name: string): boolean {
  return dotnet.test(name)
}

const php =
  /^(?:GuzzleHttp|Illuminate|Symfony|Doctrine|Laravel|Monolog|Psr|Aws|Google|PHPUnit|Composer|Predis|PhpAmqpLib|Twig|Carbon|Stripe|League|React|Amp|Laminas|Zend|Cake|Yii|yii|Slim|Nette|Ramsey|Brick|Nyholm|Http|Spatie|Livewire|Filament|Enqueue|Interop|Elastic|Elasticsearch|MongoDB|Swoole|Hyperf|Sentry|Pimple|Bernard|Ratchet|Revolt|Fideloper|Barryvdh|Inertia|Mockery|Magento\\Framework|Kreait|Twilio|Mailgun|Swift_\w*|PDO\w*|mysqli\w*|Redis\w*|SoapClient|DateTime\w*|DOM\w*|Reflection\w*|Closure|Generator|ArrayIterator|SplFileObject|RdKafka|Memcached?|Exception|ErrorException)(?:\\|->|::)/

/** Functions without a namespace and class are those of PHP, except functions of scripts, which are rare. */
export function isPhpLibrary(called: string): boolean {
  return php.test(called) || !/\\|->|::/.test(called) || called.includes('\\Framework\\')
}

const rust =
  /^(?:<?(?:core|std|alloc|tokio|tokio_util|futures|futures_util|futures_core|hyper|hyper_util|tower|tower_http|axum|actix\w*|serde|serde_json|sqlx\w*|reqwest|rayon\w*|anyhow|eyre|color_eyre|thiserror|tracing\w*|log|rdkafka|lapin|redis|mio|h2|http|rustls|native_tls|openssl|diesel|tonic|prost|async_std|async_trait|crossbeam\w*|parking_lot\w*|backtrace|panic_unwind|test|clap|rocket|warp|deadpool\w*|bb8|aws_\w+|smithy\w*|once_cell|dashmap|chrono|uuid|regex|bytes|mongodb|scylla|kube|sentry\w*|opentelemetry\w*|criterion|jsonwebtoken|pin_project\w*|indexmap|hashbrown)::|rust_begin_unwind|rust_panic|__rust|_?_?(?:main|libc_start|clone|start_thread|pthread)|_start|clone\d?$|start_thread|main$|<unknown>|0x)/

export function isRustLibrary(name: string): boolean {
  return rust.test(name)
}
