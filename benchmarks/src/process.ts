/** Child processes: started, heard, and killed where they stand. */
import { fork, type ChildProcess } from "node:child_process"
import { existsSync } from "node:fs"
import { fileURLToPath } from "node:url"
import type { Answer, Order } from "./child.js"

const now = (): number => Number(process.hrtime.bigint()) / 1e6

export interface Heard<A> {
  /** On the machine's monotonic clock, in milliseconds. */
  readonly startedAt: number
  readonly answer: A
}

/** Starts a module of ours, waits for its one message, and then kills it or lets it end. */
const ask = <A>(module: string, args: ReadonlyArray<string>, limitMs: number, kill: boolean): Promise<Heard<A>> =>
  new Promise((resolve, reject) => {
    const startedAt = now()
    const child: ChildProcess = fork(fileURLToPath(new URL(module, import.meta.url)), args, {
      stdio: ["ignore", "ignore", "pipe", "ipc"],
      execArgv: ["--no-warnings"],
      env: { ...process.env, NODE_ENV: "production" },
    })
    let said = ""
    let answer: A | undefined
    let late = false
    child.stderr!.on("data", (chunk: Buffer) => void (said = (said + chunk.toString()).slice(-4_000)))
    const timer = setTimeout(() => {
      late = true
      child.kill("SIGKILL")
    }, limitMs)
    child.on("message", (message) => {
      answer = message as A
      if (kill) child.kill("SIGKILL")
    })
    child.on("error", reject)
    child.on("exit", (code, signal) => {
      clearTimeout(timer)
      if (answer !== undefined) return resolve({ startedAt, answer })
      const how = late ? `not done after ${limitMs / 1_000} s` : `ended with ${code ?? signal} and no answer`
      const line =
        said.split("\n").find((each) => /^\s*(Uncaught )?\w*Error\b/.test(each)) ?? said.trim().split("\n").at(-1) ?? ""
      reject(new Error(line === "" ? how : `${how}: ${line.trim().slice(0, 300)}`))
    })
  })

/** One file of an engine and all that it needs, where `bundle.mjs` has made one. */
const oneFile = (engine: string): string | null => {
  const file = `./one/${engine}.mjs`
  return existsSync(new URL(file, import.meta.url)) ? file : null
}

/** Whether an engine's process can be one file. */
export const isOneFile = (engine: string): boolean => oneFile(engine) !== null

/** As one file, unless it can't be or `asModules` asks for the files of its packages. */
export const askChild = (order: Order, limitMs: number, asModules: boolean): Promise<Heard<Answer>> =>
  ask(
    (asModules ? null : oneFile(order.engine)) ?? "./child.js",
    [JSON.stringify(order)],
    limitMs,
    order.workload === "prepare" || order.workload === "resume",
  )

export const askRates = async (folder: string, url: string, forMs: number): Promise<Record<string, number>> =>
  (await ask<Record<string, number>>("./rates.js", [folder, url, String(forMs)], 120_000, false)).answer
