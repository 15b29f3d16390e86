/**
 * What every page of the console knows: the project it shows, who looks at it, and what they may do.
 */
import type { Principal, Role } from "@tropism/api/authorization"
import type { Project } from "@tropism/api/system-api"
import { createContext, useContext } from "react"
import type { KeyMap } from "../keys/key-map.ts"

export interface ConsoleState {
  readonly project: Project
  readonly principal: Principal
  readonly role: Role
  /** Editors and above: change the graph and todos, decide what agents suggest, and answer what they ask. */
  readonly canAnswer: boolean
  /** Reviewers and above: undo what agents did, and take back the trust that they earned. */
  readonly canTakeBack: boolean
  /** Members, tokens, foreign servers and the kill switch. */
  readonly isAdmin: boolean
  readonly keyMap: KeyMap
}

export const ConsoleContext = createContext<ConsoleState | undefined>(undefined)

/** **Gotchas** A defect outside the frame: only pages inside it have a project. */
export const useConsole = (): ConsoleState => {
  const state = useContext(ConsoleContext)
  if (state === undefined) throw new Error("A page was shown outside the console's frame")
  return state
}
