/**
 * Labelled failures of many causes in eight languages, to measure the grouping with. A seed gives the names
 * of the business, near misses of each family, sizes of causes, values and the order. So each seed is a
 * corpus with other causes.
 */
import { type CauseDefinition, createWorld, type LabelledFailure } from './cause.ts'
import { createCodeCauses } from './causes/code-formats.ts'
import { createDotnetCauses } from './causes/dotnet.ts'
import { createFieldCauses } from './causes/field-formats.ts'
import { createFrameworkCauses } from './causes/frameworks.ts'
import { createGoCauses } from './causes/go.ts'
import { createJavaCauses } from './causes/java.ts'
import { createNodeCauses } from './causes/node.ts'
import { createCausesInOtherLanguages } from './causes/other-languages.ts'
import { createPlainCauses } from './causes/plain.ts'
import { createPythonCauses } from './causes/python.ts'
import { createScriptingCauses } from './causes/scripting.ts'
import { readTextCauses } from './read-texts.ts'
import { createValues, type Values } from './values.ts'

/** The number of failures of a cause: a few, some or many. */
const sizes = [5, 6, 7, 8, 10, 12, 15, 20, 30, 40, 60, 90, 150, 250]

/** In the order of arrival. */
export function createCorpus(seed: number): LabelledFailure[] {
  const values = createValues(seed)
  const causes = createCauses(values)
  const failures = causes.flatMap((cause) =>
    Array.from({ length: values.pick(sizes) }, () => createFailure(cause, values)),
  )
  return values.shuffle(failures)
}

function createCauses(values: Values): CauseDefinition[] {
  const world = createWorld(values)
  const generated = [
    createJavaCauses,
    createNodeCauses,
    createPythonCauses,
    createGoCauses,
    createDotnetCauses,
    createScriptingCauses,
    createPlainCauses,
    createCausesInOtherLanguages,
    createCodeCauses,
    createFieldCauses,
    createFrameworkCauses,
  ].flatMap((create) => create(world))
  return [...generated, ...readTextCauses()]
}

function createFailure(
  { cause, queue, errorClass, write }: CauseDefinition,
  values: Values,
): LabelledFailure {
  const { message, stack = '' } = write(values)
  return { cause, queue, errorClass, message, stack }
}
