/** Writes the files that are made from the code. With --check it only says which ones are out of step. */
import { approvedFiles, howToApprove, readApproved, writeApproved } from './surface/approved-files.ts'

const isCheck = process.argv.includes('--check')
const changed = Object.entries(approvedFiles).filter(([path, make]) => readApproved(path) !== make())

for (const [path, make] of changed) {
  if (isCheck) console.error(`${path} is out of step with the code.`)
  else {
    writeApproved(path, make())
    console.log(`wrote ${path}`)
  }
}
if (changed.length === 0) console.log('All files made from the code are in step with it.')
else if (isCheck) {
  console.error(howToApprove)
  process.exitCode = 1
}
