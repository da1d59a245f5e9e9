/** How many letters a single call of this dialect may read or change. */
export type DlqLimits = Readonly<{
  pageSizeDefault: number
  pageSizeMax: number
  requeueMax: number
  purgeMax: number
}>

export type DlqSettings = Readonly<{
  'dlq.page_size_default': number
  'dlq.page_size_max': number
  'dlq.requeue_limit': number
  'dlq.purge_limit': number
}>

export function toDlqLimits(settings: DlqSettings): DlqLimits {
  const pageSizeMax = settings['dlq.page_size_max']
  return {
    pageSizeDefault: Math.min(settings['dlq.page_size_default'], pageSizeMax),
    pageSizeMax,
    requeueMax: settings['dlq.requeue_limit'],
    purgeMax: settings['dlq.purge_limit'],
  }
}

export const defaultDlqLimits: DlqLimits = {
  pageSizeDefault: 25,
  pageSizeMax: 100,
  requeueMax: 500,
  purgeMax: 1_000,
}
