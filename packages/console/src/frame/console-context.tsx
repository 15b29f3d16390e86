/**
 * What every page of the console knows: the project it shows, what the person may do, and the key map.
 */
import type { Project } from "@tropism/api/system-api"
import { createContext, useContext } from "react"

export interface KeyMap {
  readonly isOpen: boolean
  readonly areKeysOn: boolean
  readonly open: () => void
  readonly close: () => void
  readonly switchKeys: (areOn: boolean) => void
}

export interface ConsoleState {
  readonly project: Project
  readonly canDecide: boolean
  readonly canAnswer: boolean
  readonly keyMap: KeyMap
}

export const ConsoleContext = createContext<ConsoleState | undefined>(undefined)

/** **Gotchas** A defect outside the frame: only pages inside it have a project. */
export const useConsole = (): ConsoleState => {
  const state = useContext(ConsoleContext)
  if (state === undefined) throw new Error("A page was shown outside the console's frame")
  return state
}
