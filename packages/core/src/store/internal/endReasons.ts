/** Why a run failed, or waits for a person, as it was stored: a later version may have written what this one does not know. */
import type { FailureRecord, ParkRecord } from "../../model/Records.js"

type Fields = Readonly<Record<string, unknown>>

const hasTexts = (value: unknown, ...fields: ReadonlyArray<string>): value is Fields =>
  typeof value === "object" && value !== null && fields.every((field) => typeof (value as Fields)[field] === "string")

const isTextOrNull = (value: unknown): boolean => value === null || typeof value === "string"

/** Whether a failure is of a kind that `failureOf` can tell of. */
export const isFailureRecord = (value: unknown): value is FailureRecord => {
  if (!hasTexts(value, "kind", "step", "problem")) return false
  switch (value["kind"]) {
    case "canceled":
      return true
    case "declared":
      return isTextOrNull(value["operation"]) && isTextOrNull(value["value"])
    case "undeclared":
      return hasTexts(value["details"], "name", "message")
    case "child":
      return (
        hasTexts(value, "runId", "workflow") &&
        typeof value["version"] === "number" &&
        (value["cause"] === null || isFailureRecord(value["cause"]))
      )
    default:
      return false
  }
}

/** Reasons may grow in number: people can read them all the same. */
export const isParkRecord = (value: unknown): value is ParkRecord => hasTexts(value, "reason", "step", "problem")
