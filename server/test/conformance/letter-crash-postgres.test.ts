import { describeLetterCrashes } from './letter-crash.ts'

describeLetterCrashes('PostgreSQL')
