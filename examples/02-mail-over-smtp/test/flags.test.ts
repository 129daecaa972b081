import { describe, expect, it } from "@effect/vitest"
import { readFlags } from "../src/flags.js"

describe("the flags of the demo", () => {
  const none = { store: "sqlite", keep: false, help: false }

  it.each([
    [[], none],
    [["--store", "sqlite"], none],
    [["--store=postgres"], { ...none, store: "postgres" }],
    [["--keep", "--store", "postgres"], { ...none, store: "postgres", keep: true }],
    [["-h"], { ...none, help: true }],
    // As `pnpm demo -- --keep` hands them on.
    [["--", "--keep"], { ...none, keep: true }],
  ])("%j are read", (args, flags) => {
    expect(readFlags(args)).toEqual(flags)
  })

  it.each([
    [["--store", "mysql"], "mysql"],
    [["--store", ""], "''"],
    [["--store", "Postgres"], "Postgres"],
    [["--store"], "--store"],
    [["--store", "--keep"], "--store"],
    [["--stor", "postgres"], "--stor"],
    [["postgres"], "postgres"],
  ])("%j are refused in one line that names what is wrong", (args, named) => {
    const { problem } = readFlags(args) as { readonly problem: string }
    expect(problem).toContain(named)
    expect(problem).not.toContain("\n")
  })
})
