import { expect, it } from 'vitest'
import { maskStore } from './store-text.ts'

it.each([
  ['postgres://app:hush@db/q', 'postgres://app:[secret]@db/q'],
  ['postgres://app:hu:s/h@hu@db/q', 'postgres://app:[secret]@db/q'],
  ['postgres://:hush@db/q', 'postgres://:[secret]@db/q'],
  ['postgres:app:hush@db', 'postgres:app:[secret]@db'],
  ['app:hush@db', 'app:[secret]@db'],
  ['postgres://db/q?user=a&Password=hush&x=1', 'postgres://db/q?user=a&Password=[secret]&x=1'],
])('maskStore removes the password from %s', (text, shown) => {
  expect(maskStore(text)).toBe(shown)
})

it.each(['postgres://app@db:5432/q', 'data/redrive.db', 'sqlite:a.db', ':memory:', 'C:\\a.db'])(
  'maskStore leaves %s unchanged',
  (text) => {
    expect(maskStore(text)).toBe(text)
  },
)
