/**
 * Listens to the keyboard for the inbox, while no dialog is open and nobody types.
 */
import { useEffect, useRef } from "react"
import { isDialogOpen, isTyping } from "../keys/is-typing.ts"
import { useKeyMap } from "../keys/key-map.ts"
import { bindings, type Command, commandOf } from "./inbox-keys.ts"

const decisions: ReadonlyArray<Command> = ["approve", "reject", "edit", "approveSelected", "rejectSelected"]

interface InboxKeys {
  /** Whether the list has just moved by itself: decision keys are deaf for a moment then. */
  readonly isMoving: () => boolean
  /** False when single keys are turned off. */
  readonly isListening: boolean
  readonly onCommand: (command: Command) => void
}

export const useInboxKeys = ({ isMoving, isListening, onCommand }: InboxKeys): void => {
  const { enter } = useKeyMap()
  useEffect(() => enter({ title: "Inbox", keys: bindings }), [enter])
  const latest = useRef(onCommand)
  useEffect(() => {
    latest.current = onCommand
  })
  useEffect(() => {
    if (!isListening) return
    const listen = (event: KeyboardEvent) => {
      if (event.defaultPrevented || isTyping(event.target) || isDialogOpen()) return
      const command = commandOf(event)
      if (command === undefined) return
      if (decisions.includes(command) && isMoving()) return
      event.preventDefault()
      latest.current(command)
    }
    document.addEventListener("keydown", listen)
    return () => document.removeEventListener("keydown", listen)
  }, [isListening, isMoving])
}
