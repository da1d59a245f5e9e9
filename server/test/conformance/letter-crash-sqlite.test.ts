import { describeLetterCrashes } from './letter-crash.ts'

describeLetterCrashes('SQLite file')
