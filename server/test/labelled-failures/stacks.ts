/**
 * Stacks as runtimes write them. The functions of the application are given; lines, versions, addresses,
 * release folders and frames of libraries are random, as after a release or an update.
 */
import type { Values } from './values.ts'

/** `Class.method` or `file.function`, the thrower first. */
export type Frames = readonly string[]

type JavaError = Readonly<{ type: string; message: string; frames: Frames; library?: Frames }>

/** The last error is the root cause. */
export function javaStack(values: Values, errors: readonly JavaError[]): string {
  return errors
    .map(({ type, message, frames, library = [] }, index) => {
      const lines = [
        ...library.map((call) => javaFrame(values, call)),
        ...frames.flatMap((call, place) => [
          ...(place > 0 && values.chance(0.3) ? [generatedFrame(values, call)] : []),
          javaFrame(values, call),
        ]),
        ...springFrames(values),
      ]
      return [
        `${index > 0 ? 'Caused by: ' : ''}${type}: ${message}`,
        ...lines.map((line) => `\tat ${line}`),
      ].join('\n')
    })
    .join(`\n\t... ${values.number(20, 90)} more\n`)
}

function javaFrame(values: Values, call: string): string {
  const type = call.slice(0, call.lastIndexOf('.'))
  const file = type.slice(type.lastIndexOf('.') + 1).replace(/\$.*$/, '')
  const jar = values.chance(0.2) ? ` ~[app-${values.number(1, 9)}.${values.number(0, 40)}.jar!/:na]` : ''
  return `${call}(${file}.java:${values.number(20, 900)})${jar}`
}

function generatedFrame(values: Values, call: string): string {
  const type = call.slice(0, call.lastIndexOf('.'))
  return values.pick([
    `jdk.internal.reflect.GeneratedMethodAccessor${values.number(1, 900)}.invoke(Unknown Source)`,
    `${type}$$SpringCGLIB$$${values.number(0, 3)}.run(<generated>)`,
    `${type}$$Lambda/0x${values.hex(16)}.apply(Unknown Source)`,
    `jdk.proxy${values.number(2, 5)}.$Proxy${values.number(40, 400)}.run(Unknown Source)`,
  ])
}

function springFrames(values: Values): string[] {
  return [
    `java.base/java.lang.reflect.Method.invoke(Method.java:${values.number(400, 700)})`,
    `org.springframework.kafka.listener.KafkaMessageListenerContainer$ListenerConsumer.run(KafkaMessageListenerContainer.java:${values.number(1000, 1900)})`,
    'java.base/java.lang.Thread.run(Thread.java:1583)',
  ].slice(0, values.number(1, 4))
}

/** `calls`: functions with their files: `PriceService.load@prices/service`. `cause`: lines of the cause. */
export function nodeStack(
  values: Values,
  header: string,
  calls: Frames,
  cause: readonly string[] = [],
): string {
  const root = values.pick([
    '/app',
    '/srv/app',
    '/usr/src/app',
    `/opt/releases/${values.number(20_240_101, 20_261_231)}`,
  ])
  const lines = calls.map((call, index) => {
    const [name, file] = call.split('@') as [string, string]
    return `    at ${index > 0 ? 'async ' : ''}${name} (${root}/dist/${file}.js:${values.number(5, 400)}:${values.number(3, 60)})`
  })
  const library = [
    `    at process.processTicksAndRejections (node:internal/process/task_queues:${values.number(90, 110)}:5)`,
    `    at async Job.run (${root}/node_modules/.pnpm/bullmq@5.${values.number(1, 60)}.${values.number(0, 9)}/node_modules/bullmq/dist/cjs/classes/worker.js:${values.number(100, 900)}:28)`,
  ].slice(0, values.number(1, 3))
  return [header, ...lines, ...library, ...cause].join('\n')
}

/** `calls`: the thrower first, as `load@tasks/prices`. `before`: an error that was the cause. */
export function pythonStack(values: Values, header: string, calls: Frames, before = ''): string {
  const version = values.pick(['3.10', '3.11', '3.12'])
  const root = values.pick(['/app', '/srv/service', '/home/app/src'])
  const frames = calls.toReversed().map((call) => {
    const [name, file] = call.split('@') as [string, string]
    return `  File "${root}/${file}.py", line ${values.number(8, 400)}, in ${name}\n    result = handle(value)`
  })
  const library = `  File "/usr/local/lib/python${version}/site-packages/celery/app/trace.py", line ${values.number(400, 800)}, in trace_task\n    R = retval = fun(*args, **kwargs)`
  const inner = values.chance(0.5)
    ? [
        `  File "/usr/local/lib/python${version}/site-packages/requests/models.py", line ${values.number(900, 1100)}, in send\n    raise error`,
      ]
    : []
  return `${before}Traceback (most recent call last):\n${[library, ...frames, ...inner].join('\n')}\n${header}`
}

/** `calls`: as `prices.(*Store).Load@internal/prices/store`, the thrower first. */
export function goStack(values: Values, module: string, calls: Frames): string {
  const root = values.pick(['/build', '/src', '/home/runner/work/app'])
  const argument = () => `0x${values.text('0123456789abcdef', values.number(2, 11)).padStart(2, '1')}`
  const frames = calls.map((call) => {
    const [name, file] = call.split('@') as [string, string]
    return `${module}/${file.replace(/\/[^/]*$/, '').replace(/\/[^/]*$/, '')}/${name}(${argument()}, {${argument()}, ${argument()}})\n\t${root}/${file}.go:${values.number(10, 400)} +0x${values.hex(3)}`
  })
  return [
    `goroutine ${values.number(1, 90_000)} [running]:`,
    `panic({${argument()}?, ${argument()}?})\n\t/usr/local/go/src/runtime/panic.go:${values.number(700, 930)} +0x145`,
    ...frames,
    `created by ${module}/cmd/worker.main in goroutine 1\n\t${root}/cmd/worker/main.go:${values.number(20, 90)} +0x${values.hex(3)}`,
  ].join('\n')
}

/** `calls`: as `Shop.Billing.InvoiceHandler.Handle`, the thrower first. */
export function dotnetStack(values: Values, calls: Frames): string {
  const root = values.pick([
    '/src',
    '/build',
    'C:\\agent\\_work\\1\\s',
    `/home/vsts/work/${values.number(1, 9)}/s`,
  ])
  const frames = calls.map((call) => {
    const [type, method] = [call.slice(0, call.lastIndexOf('.')), call.slice(call.lastIndexOf('.') + 1)]
    const file = type.slice(type.lastIndexOf('.') + 1)
    const shown = values.chance(0.3) ? `${type}.<${method}>d__${values.number(1, 30)}.MoveNext` : call
    return `   at ${shown}(Message message, CancellationToken token) in ${root}/${file}.cs:line ${values.number(12, 300)}`
  })
  const library = [
    '   at System.Runtime.CompilerServices.TaskAwaiter.HandleNonSuccessAndDebuggerNotification(Task task)',
    `   at MassTransit.Middleware.ConsumerMessageFilter\`2.Send(ConsumeContext\`1 context, IPipe\`1 next) in /_/src/MassTransit/Consumers/Filter.cs:line ${values.number(40, 90)}`,
    '--- End of stack trace from previous location ---',
  ].slice(0, values.number(1, 4))
  return [...frames, ...library].join('\n')
}

/** `calls`: as `charge@app/services/charge_card`, the thrower first. */
export function rubyStack(values: Values, calls: Frames): string {
  const version = `3.${values.number(1, 4)}.0`
  const root = values.pick([
    '/app',
    '/var/www/shop/current',
    `/var/www/shop/releases/${values.number(20_240_101, 20_261_231)}`,
  ])
  const gem = (name: string, file: string) =>
    `/usr/local/bundle/ruby/${version}/gems/${name}-${values.number(5, 9)}.${values.number(0, 3)}.${values.number(0, 9)}/lib/${file}.rb:${values.number(10, 600)}:in \`call'`
  const quote = values.pick(['`', "'"])
  return [
    ...(values.chance(0.5) ? [gem('faraday', 'faraday/response')] : []),
    ...calls.map((call) => {
      const [name, file] = call.split('@') as [string, string]
      return `${root}/${file}.rb:${values.number(5, 200)}:in ${quote}${name}'`
    }),
    gem('sidekiq', 'sidekiq/processor'),
  ].join('\n')
}

/** `calls`: as `App\Jobs\SendInvoice->handle`, the thrower first. */
export function phpStack(values: Values, calls: Frames): string {
  const root = values.pick([
    '/var/www/html',
    `/var/www/releases/${values.number(20_240_101, 20_261_231)}`,
    '/app',
  ])
  const lines = [
    `${root}/vendor/guzzlehttp/guzzle/src/Client.php(${values.number(80, 400)}): GuzzleHttp\\Client->transfer(Object(GuzzleHttp\\Psr7\\Request), Array)`,
    ...calls.map((call) => {
      const file = call
        .replace(/(?:->|::).*$/, '')
        .replaceAll('\\', '/')
        .replace('App/', 'app/')
      return `${root}/${file}.php(${values.number(10, 300)}): ${call}('${values.token(8)}', Array)`
    }),
    `${root}/vendor/laravel/framework/src/Illuminate/Queue/CallQueuedHandler.php(${values.number(40, 180)}): Illuminate\\Bus\\Dispatcher->dispatchNow(Object(App\\Jobs\\Job))`,
    '{main}',
  ]
  return lines.map((line, index) => `#${index} ${line}`).join('\n')
}

/** `calls`: as `pricing::tariff::load`, the thrower first. */
export function rustStack(values: Values, header: string, calls: Frames): string {
  const address = () => `0x${values.hex(12)}`
  const library = ['rust_begin_unwind', 'core::panicking::panic_fmt', 'core::result::unwrap_failed']
  const ending = ['tokio::runtime::task::raw::poll', 'std::sys::pal::unix::thread::Thread::new::thread_start']
  const lines = [...library, ...calls.map((call) => `${call}::h${values.hex(16)}`), ...ending].map(
    (call, index) =>
      `  ${String(index).padStart(2)}: ${address()} - ${call}\n             at /rustc/${values.hex(40)}/library/core/src/panicking.rs:${values.number(20, 700)}:14`,
  )
  return `${header}\nstack backtrace:\n${lines.join('\n')}`
}
