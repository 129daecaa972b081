/** Runs a command to its end, as a user would: without the conditions and loaders that this workspace runs under. */
import { execFile } from "node:child_process"
import { resolve } from "node:path"

export const root = resolve(import.meta.dirname, "../..")

export interface Finished {
  readonly code: number
  /** Both streams: compilers disagree on where they complain. */
  readonly text: string
}

const cleanEnv = (): NodeJS.ProcessEnv => {
  // pnpm and vitest leave their settings behind; npm would read the first, Node the second.
  const kept = Object.entries(process.env).filter(([name]) => !/^(npm_config_|npm_package_|NODE_|VITEST)/i.test(name))
  return { ...Object.fromEntries(kept), NODE_NO_WARNINGS: "0" }
}

export const run = (cwd: string, command: string, args: ReadonlyArray<string>): Promise<Finished> =>
  new Promise((done, fail) => {
    execFile(command, [...args], { cwd, env: cleanEnv(), maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) => {
      if (error !== null && typeof error.code !== "number") fail(error)
      else done({ code: error === null ? 0 : Number(error.code), text: stdout + stderr })
    })
  })

/** The same, for a command that must succeed. */
export const runOk = async (cwd: string, command: string, args: ReadonlyArray<string>): Promise<string> => {
  const { code, text } = await run(cwd, command, args)
  if (code !== 0) throw new Error(`${command} ${args.join(" ")} ended with ${code} in ${cwd}:\n${text}`)
  return text
}
