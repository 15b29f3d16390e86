/**
 * Listens to the keyboard for the inbox, while no dialog is open and nobody types.
 */
import { Clock, Effect } from "effect"
import { useEffect, useRef } from "react"
import { isTyping } from "../keys/is-typing.ts"
import { useKeyMap } from "../keys/key-map.ts"
import { limits } from "../limits.ts"
import { bindings, type Command, commandOf } from "./inbox-keys.ts"

const readClock = (): number => Effect.runSync(Clock.currentTimeMillis)

const decisions: ReadonlyArray<Command> = ["approve", "reject", "edit", "approveSelected", "rejectSelected"]

interface InboxKeys {
  /** Changes whenever the list moves by itself; decision keys are deaf for a moment then. */
  readonly order: ReadonlyArray<string>
  /** False while a dialog has the keyboard, or when single keys are turned off. */
  readonly isListening: boolean
  readonly onCommand: (command: Command) => void
}

export const useInboxKeys = ({ order, isListening, onCommand }: InboxKeys): void => {
  const { enter } = useKeyMap()
  useEffect(() => enter({ title: "Inbox", keys: bindings }), [enter])
  const settledAtMs = useRef(0)
  const latest = useRef(onCommand)
  useEffect(() => {
    latest.current = onCommand
  })
  const lastOrder = useRef(order)
  useEffect(() => {
    const before = lastOrder.current
    lastOrder.current = order
    if (before === order || before.length === 0) return
    settledAtMs.current = readClock() + limits.settleMs
  }, [order])
  useEffect(() => {
    if (!isListening) return
    const listen = (event: KeyboardEvent) => {
      if (event.defaultPrevented || isTyping(event.target)) return
      const command = commandOf(event)
      if (command === undefined) return
      if (decisions.includes(command) && readClock() < settledAtMs.current) return
      event.preventDefault()
      latest.current(command)
    }
    document.addEventListener("keydown", listen)
    return () => document.removeEventListener("keydown", listen)
  }, [isListening])
}
