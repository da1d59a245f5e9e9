import { describeKillsDuringDeadMoves } from './kill-during-dead-moves.ts'

describeKillsDuringDeadMoves('PostgreSQL')
