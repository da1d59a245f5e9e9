/** The settings of tracing. The second variables are those of the OpenTelemetry specification. */
import { duration, integer, list, number, secret, string } from './settings/setting-kinds.ts'

const attributeForm = /^[A-Za-z0-9_.\-/]{1,100}=[^,]{0,500}$/

export const tracingSettings = {
  'tracing.otlp_endpoint': string({
    variable: 'OTEL_EXPORTER_OTLP_ENDPOINT',
    pattern: /^https?:\/\/[^\s@?#]+$/,
    allowed: 'an address such as http://collector:4318',
    sentence:
      'The OpenTelemetry collector that spans are sent to, over HTTP. The path /v1/traces is added. Default: spans are not created.',
  }),
  'tracing.otlp_headers': secret({
    sentence:
      'The headers of requests to the collector, such as api-key=abc,tenant=one. Read again for every request.',
  }),
  'tracing.sample_ratio': number({
    default: 1,
    min: 0,
    max: 1,
    variable: 'OTEL_TRACES_SAMPLER_ARG',
    sentence:
      'The part of new traces that is sampled. A trace that a client started is sampled if the client sampled it.',
  }),
  'tracing.service_name': string({
    default: 'redrive',
    variable: 'OTEL_SERVICE_NAME',
    sentence: 'The name of this service in its spans.',
  }),
  'tracing.resource_attributes': list({
    variable: 'OTEL_RESOURCE_ATTRIBUTES',
    isEntry: (text) => attributeForm.test(text),
    allowed: 'attributes such as deployment.environment.name=production',
    sentence: 'Further attributes of this service in its spans.',
  }),
  'tracing.queue_max': integer({
    default: 2_048,
    min: 1,
    max: 100_000,
    variable: 'OTEL_BSP_MAX_QUEUE_SIZE',
    sentence: 'The maximum number of spans that wait to be sent. Further spans are dropped and counted.',
  }),
  'tracing.export_interval': duration({
    default: '5s',
    min: '10ms',
    max: '5m',
    sentence: 'How long spans are collected before they are sent together.',
  }),
} as const
