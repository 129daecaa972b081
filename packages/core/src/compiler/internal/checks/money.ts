/** CRN110: prices and budgets are amounts that can be counted with. */
import type { Definition } from "../../../dsl/Definition.js"
import { optionOutOfRange, type Diagnostic } from "../../../model/DiagnosticCode.js"
import type { ModelPrice } from "../../../model/Usage.js"
import { nameText, shown } from "../shown.js"

type Problem = readonly [option: string, expected: string, got: unknown]

const amounts = "a whole number of micro-dollars from 1 up, such as Usage.dollars(5)"

const ofBudget = (budget: unknown, names: ReadonlyArray<string>): ReadonlyArray<Problem> => {
  if (budget === undefined) return []
  if (typeof budget !== "object" || budget === null) return [["budget", "an object", budget]]
  return Object.entries(budget).flatMap(([name, value]): ReadonlyArray<Problem> => {
    if (!names.includes(name)) return [[`budget.${name}`, `left out; there are ${names.join(" and ")}`, value]]
    return value === undefined || (Number.isSafeInteger(value) && (value as number) >= 1)
      ? []
      : [[`budget.${name}`, amounts, value]]
  })
}

const isAmount = (value: unknown): boolean => typeof value === "number" && Number.isFinite(value) && value >= 0

const isPrice = (price: unknown): boolean => {
  if (typeof price !== "object" || price === null) return false
  const { cachedInput, cacheWrite, input, output } = price as Partial<ModelPrice>
  const others = [cachedInput, cacheWrite].filter((amount) => amount !== undefined)
  return [input, output, ...others].every(isAmount)
}

const ofPrices = (prices: unknown): ReadonlyArray<Problem> => {
  if (prices === undefined) return []
  if (typeof prices !== "object" || prices === null) return [["prices", "an object", prices]]
  return Object.entries(prices).flatMap(([model, price]): ReadonlyArray<Problem> =>
    isPrice(price)
      ? []
      : [[`prices[${JSON.stringify(model)}]`, "{ input, output }, in dollars for a million tokens", price]],
  )
}

const diagnosticsOf = (of: string, problems: ReadonlyArray<Problem>): ReadonlyArray<Diagnostic> =>
  problems.map(([option, expected, got]) => ({
    code: "CRN110",
    step: null,
    message: optionOutOfRange(of, option, expected, shown(got)),
  }))

export const checkBudget = ({ budget, name }: Definition): ReadonlyArray<Diagnostic> =>
  diagnosticsOf(`workflow '${nameText(name)}'`, ofBudget(budget, ["run", "day"]))

export const checkMoney = (of: string, prices: unknown, budget: unknown): ReadonlyArray<Diagnostic> =>
  diagnosticsOf(of, [...ofPrices(prices), ...ofBudget(budget, ["day"])])
