import { describeKillsDuringLetterActions } from './kill-during-letter-actions.ts'

describeKillsDuringLetterActions('SQLite file')
