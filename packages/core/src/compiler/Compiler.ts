/**
 * `compile`: a definition becomes a plan, or everything that is wrong with it at once, as values.
 *
 * The rules are those of the types, for callers without types; each check names the code that it writes.
 */
import * as Either from "effect/Either"
import type { Definition } from "../dsl/Definition.js"
import type { Diagnostic } from "../model/DiagnosticCode.js"
import { CompileError } from "../model/Errors.js"
import type { Plan } from "../model/Plan.js"
import { checkEffects } from "./internal/checks/effects.js"
import { checkJson } from "./internal/checks/json.js"
import { checkNames } from "./internal/checks/names.js"
import { checkOptions } from "./internal/checks/options.js"
import { checkParts } from "./internal/checks/parts.js"
import { lower } from "./internal/lower.js"

const checks: ReadonlyArray<(definition: Definition) => ReadonlyArray<Diagnostic>> = [
  checkNames,
  checkParts,
  checkEffects,
  checkJson,
  checkOptions,
]

/**
 * Compiles a definition.
 *
 * *Errors.* `CompileError` with every diagnostic found, in the order of the checks and of the steps. It never throws,
 * whatever a caller without types has put together.
 *
 * @category compiling
 * @since 0.1.0
 */
export const compile = (definition: Definition): Either.Either<Plan, CompileError> => {
  const diagnostics = checks.flatMap((check) => check(definition))
  return diagnostics.length === 0
    ? Either.right(lower(definition))
    : Either.left(new CompileError({ workflow: String(definition.name), diagnostics }))
}
