/** CRN110: limits and priorities are numbers that a claim can count with. */
import type { Definition } from "../../../dsl/Definition.js"
import type { Limits } from "../../../dsl/Limits.js"
import { durationMs } from "../../../dsl/OnUnknown.js"
import { optionOutOfRange, type Diagnostic } from "../../../model/DiagnosticCode.js"
import { nameText, shown } from "../shown.js"

/** Starts are counted one by one for as long as `per` lasts. */
const maxStarts = 100_000

const maxPerMs = 31 * 86_400_000

const maxPlaces = 1_000_000

type Problem = readonly [option: string, expected: string, got: unknown]

const wholeUpTo = (option: string, most: number, value: unknown): ReadonlyArray<Problem> =>
  Number.isSafeInteger(value) && (value as number) >= 1 && (value as number) <= most
    ? []
    : [[option, `a whole number from 1 to ${most}`, value]]

const places = (option: string, value: unknown): ReadonlyArray<Problem> =>
  value === undefined ? [] : wholeUpTo(option, maxPlaces, value)

const ofPerKey = (perKey: Limits["perKey"] | null): ReadonlyArray<Problem> =>
  perKey === undefined
    ? []
    : [
        ...(typeof perKey?.key === "function"
          ? []
          : [["limits.perKey.key", "a function from { input } to a text", perKey?.key] as const]),
        ...places("limits.perKey.concurrency", perKey?.concurrency),
      ]

const ofRate = ({ perKey, rate }: Limits): ReadonlyArray<Problem> => {
  if (rate === undefined) return []
  const ms = durationMs(rate?.per as never)
  return [
    ...wholeUpTo("limits.rate.count", maxStarts, rate?.count),
    ...(ms >= 1 && ms <= maxPerMs
      ? []
      : [["limits.rate.per", "a finite duration over zero, of at most 31 days", rate?.per] as const]),
    ...(rate?.perKey === true && perKey === undefined
      ? [["limits.rate.perKey", "left out where there is no limits.perKey", true] as const]
      : []),
  ]
}

const ofLimits = (limits: Limits | null | undefined): ReadonlyArray<Problem> => {
  if (limits === undefined) return []
  if (typeof limits !== "object" || limits === null) return [["limits", "an object", limits]]
  return [...places("limits.concurrency", limits.concurrency), ...ofPerKey(limits.perKey), ...ofRate(limits)]
}

const ofPriority = (priority: unknown): ReadonlyArray<Problem> =>
  priority === undefined || typeof priority === "function" || Number.isSafeInteger(priority)
    ? []
    : [["priority", "a whole number, or a function that gives one", priority]]

export const checkLimits = ({ limits, name, priority }: Definition): ReadonlyArray<Diagnostic> =>
  [...ofLimits(limits), ...ofPriority(priority)].map(([option, expected, got]) => ({
    code: "CRN110",
    step: null,
    message: optionOutOfRange(`workflow '${nameText(name)}'`, option, expected, shown(got)),
  }))
