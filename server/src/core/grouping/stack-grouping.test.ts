import { describe, expect, it } from 'vitest'
import { readStack } from './read-stack.ts'

const lines = (...all: readonly string[]): string => all.join('\n')

describe('the frames of the application', () => {
  it('Java: libraries, generated classes, lambdas and line numbers are left out', () => {
    const stack = lines(
      'com.acme.billing.InvoiceException: no tax rate',
      '\tat org.springframework.util.Assert.notNull(Assert.java:201)',
      '\tat com.acme.billing.TaxTable.lambda$rate$3(TaxTable.java:77)',
      '\tat com.acme.billing.TaxTable$$Lambda$1204/0x0000000801a3f2c8.apply(Unknown Source)',
      '\tat java.base/java.util.Optional.orElseThrow(Optional.java:403)',
      '\tat app//com.acme.billing.TaxTable.rate(TaxTable.java:75)',
      '\tat com.acme.billing.Invoicer$$SpringCGLIB$$0.create(<generated>)',
      '\tat com.acme.billing.Invoicer$1.run(Invoicer.java:12)',
      '\tat com.sun.proxy.$Proxy88.create(Unknown Source)',
      '\tat jdk.internal.reflect.GeneratedMethodAccessor17.invoke(Unknown Source)',
    )
    expect(readStack(stack).frames).toEqual([
      'com.acme.billing.TaxTable.rate',
      'com.acme.billing.Invoicer.run',
    ])
  })

  it('Kotlin: numbered classes of coroutines are left out', () => {
    const stack = lines(
      'java.lang.IllegalStateException: closed',
      '\tat com.acme.chat.Room$join$2.invokeSuspend(Room.kt:31)',
      '\tat kotlin.coroutines.jvm.internal.BaseContinuationImpl.resumeWith(ContinuationImpl.kt:33)',
    )
    expect(readStack(stack).frames).toEqual(['com.acme.chat.Room$join.invokeSuspend'])
  })

  it('Node: node_modules, node: modules, Promise.all and hashes of bundles are left out', () => {
    const stack = lines(
      'TypeError: x is not a function',
      '    at /srv/releases/20260101/dist/price.9f8e7d6c.js:12:5',
      '    at async Promise.all (index 4)',
      '    at async Basket.total (file:///srv/releases/20260101/dist/basket.mjs:88:11)',
      '    at next (/srv/node_modules/.pnpm/express@4.19.2/node_modules/express/lib/router/route.js:149:13)',
      '    at new Promise (<anonymous>)',
      '    at process.processTicksAndRejections (node:internal/process/task_queues:95:5)',
      '    at Object.handle (C:\\srv\\dist\\handler.js:3:1)',
    )
    expect(readStack(stack).frames).toEqual(['price', 'Basket.total', 'handler.handle'])
  })

  it('Node: the short names of a minified bundle are not used', () => {
    const stack = lines(
      'Error: x',
      '    at Xy.a (/var/task/main.js:1:48213)',
      '    at b (/var/task/main.js:1:51020)',
    )
    expect(readStack(stack).frames).toEqual([])
  })

  it('Python: the thrower is the last frame outside of packages', () => {
    const stack = lines(
      'Traceback (most recent call last):',
      '  File "/opt/venv/lib/python3.12/site-packages/rq/worker.py", line 1, in perform',
      '    job.perform()',
      '  File "/srv/app/releases/42/jobs/mail.py", line 20, in send',
      '    render(template)',
      '  File "/srv/app/releases/42/lib/render.py", line 9, in render',
      '    raise KeyError(name)',
      "KeyError: 'subject'",
    )
    expect(readStack(stack)).toMatchObject({ frames: ['render.render', 'mail.send'], isCut: false })
  })

  it('Python: a stack without its last line does not show the thrower', () => {
    const stack = lines(
      'Traceback (most recent call last):',
      '  File "/srv/app/jobs/mail.py", line 20, in send',
      '    render(templ',
    )
    expect(readStack(stack).frames).toEqual([])
  })

  it('Go: frames of the recovering code, the runtime and modules are left out, also addresses and closures', () => {
    const stack = lines(
      'goroutine 77 [running]:',
      'main.recoverWith(0xc000012345)',
      '\t/build/main.go:20 +0x65',
      'panic({0x1234, 0x5678})',
      '\t/usr/local/go/src/runtime/panic.go:884 +0x212',
      'github.com/acme/ship/route.(*Table).find(...)',
      '\t/build/route/table.go:41',
      'github.com/acme/ship/route.Plan.func1({0xc0001, 0x5}, 0x1)',
      '\t/build/route/plan.go:12 +0x1d',
      'github.com/gin-gonic/gin.(*Context).Next(0xc000)',
      '\t/go/pkg/mod/github.com/gin-gonic/gin@v1.9.1/context.go:174 +0x2b',
      'created by main.start in goroutine 1',
      '\t/build/main.go:5 +0x11',
    )
    expect(readStack(stack).frames).toEqual(['route.(*Table).find', 'route.Plan'])
  })

  it('.NET: state machines, closures, generics and libraries are left out', () => {
    const stack = lines(
      '   at System.Linq.ThrowHelper.ThrowNoElementsException()',
      '   at Acme.Stock.Shelf.<FindAsync>d__12.MoveNext() in D:\\a\\src\\Shelf.cs:line 31',
      '--- End of stack trace from previous location ---',
      '   at Acme.Stock.Picker.<>c__DisplayClass3_0.<Pick>b__0(Item i) in /src/Picker.cs:line 9',
      '   at Acme.Stock.Cache`1.Get[T](String key)',
      '   at MassTransit.Middleware.Filter.Send(ConsumeContext context)',
    )
    expect(readStack(stack).frames).toEqual([
      'Acme.Stock.Shelf.FindAsync',
      'Acme.Stock.Picker.Pick',
      'Acme.Stock.Cache.Get',
    ])
  })

  it('Ruby: gems are left out, and both formats of the method are equal', () => {
    const old = lines(
      "/usr/local/bundle/gems/pg-1.5.4/lib/pg.rb:12:in `exec'",
      "/app/app/models/coupon.rb:31:in `block in redeem'",
      "/app/app/jobs/coupon_job.rb:8:in `perform'",
    )
    const recent = lines(
      "/usr/local/bundle/ruby/3.4.0/gems/pg-1.5.9/lib/pg.rb:14:in 'PG::Connection#exec'",
      "/app/app/models/coupon.rb:33:in 'block in Coupon#redeem'",
      "/app/app/jobs/coupon_job.rb:9:in 'CouponJob#perform'",
    )
    expect(readStack(old).frames).toEqual(['coupon.redeem', 'coupon_job.perform'])
    expect(readStack(recent).frames).toEqual(readStack(old).frames)
  })

  it('PHP: vendor code, release folders and arguments are left out', () => {
    const stack = lines(
      '#0 /var/www/releases/20260102/vendor/symfony/http-client/Response.php(12): Symfony\\Component\\HttpClient\\Response->check()',
      "#1 /var/www/releases/20260102/src/Shop/Feed.php(88): Shop\\Feed->load('https://x', Array)",
      '#2 [internal function]: Shop\\Cron\\Nightly->run()',
      '#3 {main}',
    )
    expect(readStack(stack).frames).toEqual(['Shop\\Feed->load', 'Shop\\Cron\\Nightly->run'])
  })

  it('Rust: std, async runtimes, hashes and addresses are left out', () => {
    const stack = lines(
      "thread 'main' panicked at src/plan.rs:10:5:",
      'stack backtrace:',
      '   0: rust_begin_unwind',
      '             at /rustc/abc/library/std/src/panicking.rs:645:5',
      '   1: 0x55d0a1b2c3d4 - planner::plan::Plan::next::h0123456789abcdef',
      '             at ./src/plan.rs:10:5',
      '   2: planner::run::{{closure}}',
      '   3: tokio::runtime::task::harness::poll_future',
    )
    expect(readStack(stack).frames).toEqual(['planner::plan::Plan::next', 'planner::run'])
  })

  it('the message of Jackson is not a frame', () => {
    const stack = lines(
      'com.fasterxml.jackson.databind.JsonMappingException: no',
      ' at [Source: (String)"{"orderId":"17"}"; line: 1, column: 5]',
      '\tat com.acme.Parser.read(Parser.java:9)',
    )
    expect(readStack(stack).frames).toEqual(['com.acme.Parser.read'])
  })
})

describe('the root cause', () => {
  it('Java: the last "Caused by"', () => {
    const stack = lines(
      'com.acme.OrderException: cannot place',
      '\tat com.acme.Orders.place(Orders.java:3)',
      'Caused by: org.hibernate.HibernateException: no connection',
      '\tat org.hibernate.Session.open(Session.java:1)',
      '\t... 12 more',
      'Caused by: java.net.SocketTimeoutException: Connect timed out',
      '\tat java.base/java.net.Socket.connect(Socket.java:1)',
      '\t... 40 more',
    )
    expect(readStack(stack)).toMatchObject({
      chain: ['org.hibernate.HibernateException', 'java.net.SocketTimeoutException'],
      rootMessage: 'Connect timed out',
      frames: ['com.acme.Orders.place'],
      isCut: false,
    })
  })

  it('Node: [cause] and the code of the error', () => {
    const stack = lines(
      'Error: save failed',
      '    at save (/app/store.js:3:1) {',
      '  [cause]: Error: write EPIPE',
      '      at WriteWrap.onWriteComplete (node:internal/stream_base_commons:94:16) {',
      "    code: 'EPIPE'",
      '  }',
      '}',
    )
    expect(readStack(stack)).toMatchObject({
      chain: ['Error'],
      rootMessage: 'write EPIPE',
      codes: ['EPIPE'],
      isCut: false,
    })
  })

  it('Python: the first of a chain of errors', () => {
    const stack = lines(
      'Traceback (most recent call last):',
      '  File "/srv/app/db.py", line 9, in read',
      '    connect()',
      'ConnectionRefusedError: [Errno 111] Connection refused',
      '',
      'The above exception was the direct cause of the following exception:',
      '',
      'Traceback (most recent call last):',
      '  File "/srv/app/job.py", line 4, in run',
      '    read()',
      'app.errors.JobFailed: no data',
    )
    expect(readStack(stack)).toMatchObject({
      chain: ['ConnectionRefusedError'],
      rootMessage: '[Errno 111] Connection refused',
      frames: ['db.read'],
    })
  })

  it('.NET: the innermost exception', () => {
    const stack = lines(
      'Acme.JobException: failed',
      ' ---> System.Net.Http.HttpRequestException: Connection refused',
      ' ---> System.Net.Sockets.SocketException (111): Connection refused',
      '   at System.Net.Sockets.Socket.Connect()',
      '   --- End of inner exception stack trace ---',
      '   at System.Net.Http.HttpClient.Send()',
      '   --- End of inner exception stack trace ---',
      '   at Acme.Job.Run() in /src/Job.cs:line 1',
    )
    const { chain, frames } = readStack(stack)
    expect(chain).toEqual(['System.Net.Http.HttpRequestException', 'System.Net.Sockets.SocketException'])
    expect(frames).toEqual(['Acme.Job.Run'])
  })

  it('PHP: the error in front of "Next"', () => {
    const stack = lines(
      'PDOException: SQLSTATE[HY000] [2002] Connection refused in /app/Db.php:4',
      '#0 /app/src/Repo.php(4): App\\Db->open()',
      '#1 {main}',
      '',
      'Next App\\StoreException: no store in /app/src/Repo.php:9',
      '#0 /app/src/Job.php(4): App\\Repo->load()',
      '#1 {main}',
    )
    expect(readStack(stack)).toMatchObject({ chain: ['PDOException'], frames: ['App\\Db->open'] })
  })

  it('Rust: the last of the listed causes', () => {
    const stack = lines(
      'Error: cannot plan',
      '',
      'Caused by:',
      '    0: cannot read map',
      '    1: Permission denied (os error 13)',
    )
    expect(readStack(stack)).toMatchObject({ rootMessage: 'Permission denied (os error 13)' })
  })

  it('a stack that ends within a line is cut', () => {
    const stack = lines('com.acme.A: x', '\tat com.acme.B.c(B.java:3)', '\tat org.springframework.aop.frame')
    expect(readStack(stack).isCut).toBe(true)
  })
})
