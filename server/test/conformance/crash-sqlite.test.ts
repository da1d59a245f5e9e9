import { describeCrashes } from './crash.ts'

describeCrashes('SQLite file')
