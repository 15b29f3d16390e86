/**
 * A measured program in a process of its own: it is told what to do and answers what it measured.
 *
 * What a program prints is not ours; questions and answers go over a channel of
 * their own (`bench/peers/acts.ts` is the other end). The clock runs in the
 * program itself wherever a figure is finer than a message between processes.
 */
import type { Json } from "../doors.ts"

export interface Program {
  readonly act: (name: string, input?: unknown) => Promise<Json>
  readonly stop: () => Promise<void>
}

interface Waiting {
  readonly resolve: (answer: Json) => void
  readonly reject: (fault: Error) => void
}

/** Starts a program and waits until it takes what it is told. */
export const startProgram = async (
  command: ReadonlyArray<string>,
  environment: Readonly<Record<string, string>>
): Promise<Program> => {
  const asked = new Map<number, Waiting>()
  const ready = Promise.withResolvers<void>()
  const child = Bun.spawn([...command], {
    env: { ...process.env, ...environment },
    stdin: "ignore",
    stdout: "ignore",
    stderr: "inherit",
    serialization: "json",
    ipc: (message: Json) => {
      if (message.ready === true) return ready.resolve()
      const waiting = asked.get(message.id)
      asked.delete(message.id)
      if (message.fault === undefined) waiting?.resolve(message.answer)
      else waiting?.reject(new Error(`${command.join(" ")}: ${message.fault}`))
    },
    onExit: (_, code) => {
      const fault = new Error(`${command.join(" ")} ended with ${code}`)
      ready.reject(fault)
      for (const { reject } of asked.values()) reject(fault)
    }
  })
  await ready.promise
  let next = 0
  return {
    act: (name, input = null) =>
      new Promise((resolve, reject) => {
        const id = next++
        asked.set(id, { resolve, reject })
        child.send({ id, act: name, input })
      }),
    stop: async () => {
      // The program may hold programs of its own, so it ends by itself where it can.
      child.send({ id: -1, act: "stop", input: null })
      const ended = await Promise.race([child.exited, Bun.sleep(10_000).then(() => undefined)])
      if (ended === undefined) child.kill("SIGKILL")
      await child.exited
    }
  }
}
