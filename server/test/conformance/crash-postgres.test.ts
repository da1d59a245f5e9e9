import { describeCrashes } from './crash.ts'

describeCrashes('PostgreSQL')
