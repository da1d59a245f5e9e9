import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { migrations as postgresMigrations } from '../postgres/migrations/migrate.ts'
import { migrations as sqliteMigrations } from '../sqlite/migrations/migrate.ts'
import { getMigrationSql, type Migration } from './migrations.ts'

const checksums = (migrations: readonly Migration[]): string[][] =>
  migrations.map((migration) => [
    migration.name,
    createHash('sha256').update(getMigrationSql(migration)).digest('hex'),
  ])

describe('the migrations of the stores', () => {
  it('both stores have the same numbers and names, without a gap', () => {
    expect(postgresMigrations.map(({ name }) => name)).toEqual(sqliteMigrations.map(({ name }) => name))
    for (const [index, { name }] of sqliteMigrations.entries()) {
      expect(name).toMatch(new RegExp(`^${String(index + 1).padStart(4, '0')}_[a-z-]+$`))
    }
  })

  // Databases in use have these migrations. Add a line for each new migration; never change a line.
  it('a released migration is never edited', () => {
    expect(checksums(sqliteMigrations)).toEqual([
      ['0001_foundation', 'ee0148936be62531b3c3db5c0f1eeba126d69c9106f36055e9358e2633d1d214'],
      ['0002_dlq-statements', 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'],
      ['0003_arrivals', '9f2eac9e6a5eb62051e300c56db5a6be3291995b7e0976c90604348fe7d01a79'],
      ['0004_lease-calls', '1b074f48ae0cdf9a3a28a2f3f75c5df7a0d2d95d602c336a2ab6d9ec59d97e92'],
      ['0005_group-templates', '1883b93145b1768874a0ad39bc49636b7c4878a9f73983e31e9c58475b7d6ab6'],
      ['0006_find-letters', 'eaa38facbd3e0525daf4c0df0ba3e20c9147e0947eb23126607972a548dcf59c'],
      ['0007_access', '114eaefd035beb23961fc460c807a3ee9eabd6ca3ab7a71923fb1d09ce155848'],
      ['0008_audit-chain', 'e72e49d5f910837f66ac8ff3c40bb68c4716e260b30159a21c4c4fa05d049035'],
      ['0009_webhooks', 'da186625db346f10ddf65c3afb78af9e103271208bac3dce716637cc9bdd8e55'],
      ['0010_kafka', '584d730f794c6be6021f5d82667457e3a917feb8b591f5bb86c7c97bd56b577b'],
      ['0011_namespaces', '78a80f68ce678d6e4eac85dc847390c0444a410269dd6e9a407fbdc6de6b99bf'],
      ['0012_causes', '0baf7913586e725dea1091899ea88760b0054cf834844a08372c90a0b63ebf30'],
      ['0013_deliveries', '36c096b9fa5c2a1cc155d05dfc73f16eb95651b49b3e9441acddbca9895778e3'],
      ['0014_message-pruning', '8716bdea3ced0a766a4e147679927da7718d0bf3840f0ebce0c244247950ef02'],
      ['0015_workers', '91d802ded8545c27a545b69117f544f04d3f7de4d7461cd479c5a8cf9eafbbc0'],
      ['0016_alerts', 'fde09c747077f110b1470fc39838e8f218abfa8e893ec9d1a5bc45b5ffe625ee'],
      ['0017_queue-deletions', 'e63f669ee7de504ddbdfbf5fe091b09e84e4fd952631f9b93a2f63873e471625'],
      ['0018_disk-reserve', 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'],
      ['0019_audit-replace', 'e3e7a5d6954eb1d03b1510654e8f22a0b76bf0180619e88bba0f41aa5dbd61ec'],
    ])
    expect(checksums(postgresMigrations)).toEqual([
      ['0001_foundation', 'fee1b277a7afc2bde76abc7c6e8a231295ac717517819bdad223c32a84032bd5'],
      ['0002_dlq-statements', 'ee1b0a940c696afdf5d4731194fdf803e515e205ce396dc53827d0d12e3dbb17'],
      ['0003_arrivals', '3bc145d2d8a07105f7d9ca04212ebed4cc603369d7aaab1f52ef2097807ea124'],
      ['0004_lease-calls', '6890d8e6889b4f344eba650a12eda6dbdeb4192c3f22e08e86d59d684c34ca5d'],
      ['0005_group-templates', '327a6f72e7b636d0768462600db19b71d21be75b408d6e58561a518cda638262'],
      ['0006_find-letters', 'eff150ac99b6c96e1b8390adcf5b425be3f1732e567b7e372bfec045420b3bc8'],
      ['0007_access', 'e44e0aba19f95ce5914ec73fb8f90b6077656a51917c69f98a17cc0c77ca8edb'],
      ['0008_audit-chain', '2ba900fc3042244d5a91b16eee15761b514aceae717605f839031f910a6bc485'],
      ['0009_webhooks', '91f0cd09929c08cf835a567018250ff39d612c6bf6411d8068b6b9f554fc1736'],
      ['0010_kafka', 'abe250f2f6d7bf8e4702bf738a10951de296466fbedd643d09eef0eb722347bc'],
      ['0011_namespaces', '881204edf88790d38b339451d7f8bbdf1242cb481b0d59bcb910afae1b7dd4ac'],
      ['0012_causes', '972cd0dfcb945dc5ec8922be8d2bf792c79348f933c7ff36b83f437905e633d6'],
      ['0013_deliveries', '67594af00d9833a69f6bfe9ca597539d9921c9118248c3d6f0c5dfaf166abb67'],
      ['0014_message-pruning', '00e2cd6ae54fef7c0ddd62982d1e20c54f34ad6d60fc28b6d7dfb2244691db26'],
      ['0015_workers', '4c17f1bc74fd760a51367f7bf3704ce7028f58723dd2f5ea23d03a8b16b29b45'],
      ['0016_alerts', 'c707fbc83922e35f430b74041d0dec6f08e4b149804be9471b5377c633943f95'],
      ['0017_queue-deletions', '98a9d1494b99b8aec79fef22126d3b37b7911430181f5716fb2c9f28fa384c19'],
      ['0018_disk-reserve', '10940f59ee65020a7b76a26cd3eb473ac8cc1d078d5201a2a8db35783d14dda0'],
      ['0019_audit-replace', 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'],
    ])
  })
})
