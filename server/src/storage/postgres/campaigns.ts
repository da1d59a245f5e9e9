export function getCampaign(..._: unknown[]): Promise<never> {
  throw new Error('TODO(#4): getCampaign')
}

export function listCampaignLetters(..._: unknown[]): Promise<never> {
  throw new Error('TODO(#4): listCampaignLetters')
}

export function listCampaigns(..._: unknown[]): Promise<never> {
  throw new Error('TODO(#4): listCampaigns')
}

export function freezeIds(..._: unknown[]): Promise<never> {
  throw new Error('TODO(#4): freezeIds')
}

export function freezeLetters(..._: unknown[]): Promise<never> {
  throw new Error('TODO(#4): freezeLetters')
}

export function putCampaign(..._: unknown[]): Promise<never> {
  throw new Error('TODO(#4): putCampaign')
}

export function skipLetters(..._: unknown[]): Promise<never> {
  throw new Error('TODO(#4): skipLetters')
}
