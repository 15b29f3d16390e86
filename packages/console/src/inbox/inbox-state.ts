/**
 * What the reviewer is doing: the current card, the selected suggestions, and those being decided.
 *
 * A pure reducer. `order` is all that waits as it stands on the page; when a
 * task leaves it, the next one becomes current, so a reviewer works down
 * the list without looking for their place. It decides nothing itself.
 */

export type Decision = "approve" | "reject"

/** Why the last decision on a suggestion was refused: it holds while the suggestion is as it was then. */
export interface Refusal {
  readonly sentence: string
  /** The suggestion as it was read behind the refusal; undefined before it is. */
  readonly read: string | undefined
}

export interface InboxState {
  readonly order: ReadonlyArray<string>
  readonly currentId: string | undefined
  readonly selected: ReadonlySet<string>
  readonly deciding: ReadonlyMap<string, Decision>
  readonly refusals: ReadonlyMap<string, Refusal>
  /** Grows whenever the page must bring the current card into view and focus it. */
  readonly focusRequests: number
}

export type InboxEvent =
  | { readonly type: "listed"; readonly order: ReadonlyArray<string> }
  | { readonly type: "stepped"; readonly by: 1 | -1 }
  | { readonly type: "entered"; readonly id: string }
  | { readonly type: "opened"; readonly id: string }
  | { readonly type: "stayed"; readonly id: string }
  | { readonly type: "wentOn" }
  | { readonly type: "toggled"; readonly id: string }
  | { readonly type: "selectedAll"; readonly ids: ReadonlyArray<string>; readonly isSelected: boolean }
  | { readonly type: "cleared" }
  | { readonly type: "decisionStarted"; readonly ids: ReadonlyArray<string>; readonly decision: Decision }
  | { readonly type: "decisionRefused"; readonly id: string; readonly sentence: string }
  | { readonly type: "refusalRead"; readonly id: string; readonly read: string }
  | { readonly type: "refusalPassed"; readonly id: string }
  | { readonly type: "decided"; readonly id: string }

export const emptyInbox: InboxState = {
  order: [],
  currentId: undefined,
  selected: new Set(),
  deciding: new Map(),
  refusals: new Map(),
  focusRequests: 0
}

export const reduceInbox = (state: InboxState, event: InboxEvent): InboxState => {
  switch (event.type) {
    case "listed":
      return relist(state, event.order)
    case "stepped":
      return step(state, event.by)
    case "entered":
      // A card that is on its way off the page may still get the focus: nobody would be current then.
      return state.currentId === event.id || !state.order.includes(event.id)
        ? state
        : { ...state, currentId: event.id }
    case "opened":
      return { ...state, currentId: event.id, focusRequests: state.focusRequests + 1 }
    case "stayed":
      return stay(state, event.id)
    case "wentOn":
      return { ...state, focusRequests: state.focusRequests + 1 }
    case "toggled":
      return { ...state, selected: withMembers(state.selected, [event.id], !state.selected.has(event.id)) }
    case "selectedAll":
      return { ...state, selected: withMembers(state.selected, event.ids, event.isSelected) }
    case "cleared":
      return state.selected.size === 0 ? state : { ...state, selected: new Set() }
    case "decisionStarted":
      return {
        ...state,
        deciding: new Map([...state.deciding, ...event.ids.map((id) => [id, event.decision] as const)]),
        refusals: without(state.refusals, event.ids)
      }
    case "decisionRefused":
      return stay(
        {
          ...state,
          deciding: without(state.deciding, [event.id]),
          refusals: new Map([...state.refusals, [event.id, { sentence: event.sentence, read: undefined }]])
        },
        event.id
      )
    case "refusalRead":
      return readBehind(state, event.id, event.read)
    case "refusalPassed":
      return { ...state, refusals: without(state.refusals, [event.id]) }
    case "decided":
      return relist(
        { ...state, deciding: without(state.deciding, [event.id]) },
        state.order.filter((id) => id !== event.id)
      )
  }
}

/** What became of it stands on the card: the keyboard goes from the button to it, where it is still the current one. */
const stay = (state: InboxState, id: string): InboxState =>
  state.currentId === id ? { ...state, focusRequests: state.focusRequests + 1 } : state

const readBehind = (state: InboxState, id: string, read: string): InboxState => {
  const refusal = state.refusals.get(id)
  return refusal === undefined
    ? state
    : { ...state, refusals: new Map([...state.refusals, [id, { ...refusal, read }]]) }
}

/** Takes a new list; what is no longer on it is forgotten, and the current place moves on when it was its own. */
const relist = (state: InboxState, order: ReadonlyArray<string>): InboxState => {
  const present = new Set(order)
  const isGone =
    state.currentId !== undefined && !present.has(state.currentId) && state.order.includes(state.currentId)
  const gone = state.order.filter((id) => !present.has(id))
  return {
    ...state,
    order,
    currentId: isGone ? neighbour(state, present) : state.currentId,
    selected: gone.some((id) => state.selected.has(id))
      ? withMembers(state.selected, gone, false)
      : state.selected,
    deciding: without(state.deciding, gone),
    refusals: without(state.refusals, gone),
    focusRequests: isGone ? state.focusRequests + 1 : state.focusRequests
  }
}

/** The suggestion that takes the place of the current one: the next that is still there, else the one before. */
const neighbour = ({ order, currentId }: InboxState, present: ReadonlySet<string>): string | undefined => {
  const place = order.findIndex((id) => id === currentId)
  return (
    order.slice(place).find((id) => present.has(id)) ??
    order.slice(0, place).findLast((id) => present.has(id))
  )
}

const step = (state: InboxState, by: 1 | -1): InboxState => {
  const place = state.order.findIndex((id) => id === state.currentId)
  const next = place === -1 ? 0 : Math.min(Math.max(place + by, 0), state.order.length - 1)
  const id = state.order[next]
  return id === undefined ? state : { ...state, currentId: id, focusRequests: state.focusRequests + 1 }
}

const withMembers = (
  set: ReadonlySet<string>,
  ids: ReadonlyArray<string>,
  isMember: boolean
): ReadonlySet<string> => {
  const next = new Set(set)
  for (const id of ids) {
    if (isMember) next.add(id)
    else next.delete(id)
  }
  return next
}

const without = <A>(map: ReadonlyMap<string, A>, ids: ReadonlyArray<string>): ReadonlyMap<string, A> =>
  ids.some((id) => map.has(id)) ? new Map([...map].filter(([id]) => !ids.includes(id))) : map
