/** Regenerates the files that are generated from the code. With --check it only reports the outdated ones. */
import { approvedFiles, howToApprove, readApproved, writeApproved } from './surface/approved-files.ts'

const isCheck = process.argv.includes('--check')
const changed = Object.entries(approvedFiles).filter(([path, make]) => readApproved(path) !== make())

for (const [path, make] of changed) {
  if (isCheck) console.error(`${path} does not match the code.`)
  else {
    writeApproved(path, make())
    console.log(`wrote ${path}`)
  }
}
if (changed.length === 0) console.log('All generated files match the code.')
else if (isCheck) {
  console.error(howToApprove)
  process.exitCode = 1
}
