/**
 * The inbox as a whole: the list, the reviewer's place in it, and what each command does.
 *
 * It joins the server's list with the pure state of `inbox-state.ts`. It draws
 * nothing and calls no endpoint itself.
 */
import type { SuggestionTask } from "@tropism/domain/task"
import type { Properties } from "@tropism/domain/json"
import { useNavigate } from "@tanstack/react-router"
import { type Dispatch, useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from "react"
import type { ConsoleState } from "../frame/console-context.tsx"
import { editFields } from "../suggestion/edit-fields.ts"
import { hasMovedSince, isDenied, isGone, isLookedAtAgain } from "../suggestion/staleness.ts"
import { type Message, useToasts } from "../parts/toasts.tsx"
import type { Command } from "./inbox-keys.ts"
import { emptyInbox, type InboxEvent, type InboxState, reduceInbox } from "./inbox-state.ts"
import { isInView, type Place } from "./linked-card.ts"
import type { SuggestionActions } from "./suggestion-card.tsx"
import { useDecidedElsewhere } from "./use-decided-elsewhere.ts"
import { useDecisions } from "./use-decisions.ts"
import { useLookingAgain } from "./use-looking-again.ts"
import { useStandingRefusals } from "./use-standing-refusals.ts"
import { useWaiting } from "./use-waiting.ts"

const noSuggestions: ReadonlyArray<SuggestionTask> = []

const goneMessage: Message = {
  tone: "refused",
  title: "Nothing to approve",
  sentence: "The object was deleted after this suggestion. Reject it to remove it."
}

const deniedMessage = ({ agentState, denial, number }: SuggestionTask): Message => ({
  tone: "refused",
  reason: "denied",
  title: `#${number} cannot be approved`,
  sentence: `${denial ?? ""}. ${agentState === "deleted" ? "Reject it." : "Reject it, or change the agent's capabilities."}`
})

const nothingToEdit: Message = {
  tone: "refused",
  title: "Nothing to edit",
  sentence: "It has no properties to edit. Approve or reject it."
}

const deletionToEdit: Message = {
  tone: "refused",
  reason: "deletion",
  title: "Nothing to edit",
  sentence: "A deletion cannot be edited. Approve or reject it."
}

const goneFromView: Message = {
  tone: "refused",
  reason: "gone",
  title: "Nothing to re-evaluate",
  sentence: "The object was deleted. Reject it to remove it."
}

const nothingMoved: Message = {
  tone: "refused",
  title: "Nothing to re-evaluate",
  sentence: "Nothing has changed since this was suggested."
}

export const useInbox = ({ project, canAnswer }: ConsoleState, linkedTaskId: string | undefined) => {
  const { pending, groups, shown, order, ...kinds } = useWaiting(project.id)
  const [inbox, dispatch] = useReducer(reduceInbox, emptyInbox)
  const rejection = useRejection()
  const decide = useDecisions(project.id, dispatch)
  const { ask: askAgain, askingId } = useLookingAgain(project.id)
  const [edited, setEdited] = useState<SuggestionTask>()
  const show = useToasts()
  // Before it is drawn: a key that is pressed meanwhile would find nobody current.
  useLayoutEffect(() => dispatch({ type: "listed", order }), [order])
  useLinkedTask(linkedTaskId, inbox, dispatch)
  useDecidedElsewhere(project.id, inbox, shown, edited === undefined ? rejection.tasks : [edited])
  useStandingRefusals(shown, inbox, dispatch)

  /** In the order in which they stand on the page; what is being decided is left alone. */
  const open = (ids: Iterable<string>): ReadonlyArray<SuggestionTask> => {
    const wanted = new Set(ids)
    return shown.filter((task) => wanted.has(task.id) && !inbox.deciding.has(task.id))
  }
  const approveAll = (approved: ReadonlyArray<SuggestionTask>) => {
    if (approved.length > 0) decide("approve", approved)
  }
  /** The card on which the keys act: the current one, at first the first suggestion, unless a link leads elsewhere. */
  const markedId = inbox.currentId ?? (canAnswer && linkedTaskId === undefined ? shown[0]?.id : undefined)
  const current = (): ReadonlyArray<SuggestionTask> => open(markedId === undefined ? [] : [markedId])

  const { ask } = rejection
  const actions: SuggestionActions = useMemo(
    () => ({
      onEnter: (id) => dispatch({ type: "entered", id }),
      onToggle: (id) => dispatch({ type: "toggled", id }),
      onApprove: (task) => decide("approve", [task]),
      onReject: (task) => ask([task]),
      onEdit: setEdited,
      onLookAgain: askAgain
    }),
    [decide, ask, askAgain]
  )
  const perform = (command: Command): void => {
    if (command === "next") dispatch({ type: "stepped", by: 1 })
    else if (command === "previous") dispatch({ type: "stepped", by: -1 })
    else if (command === "clear") dispatch({ type: "cleared" })
    else if (canAnswer) performDecision(command)
  }
  const performDecision = (command: Command): void => {
    const isOfSelected = command === "approveSelected" || command === "rejectSelected"
    // Nothing is decided that is not seen: where the first card is further down, the first press leads to it.
    if (!isOfSelected && inbox.currentId === undefined && markedId !== undefined && !isInView(markedId))
      dispatch({ type: "opened", id: markedId })
    else if (command === "select") select()
    else if (command === "approve") approveCurrent(current()[0])
    else if (command === "reject") ask(current())
    else if (command === "edit") edit(current()[0])
    else if (command === "lookAgain") lookAgain(current()[0])
    else if (command === "selectGroup") selectGroup()
    else if (command === "approveSelected") approveSelected(open(inbox.selected))
    else if (command === "rejectSelected") ask(open(inbox.selected))
  }
  /** Those that would only be refused stay, and the first of them says why. */
  const approveSelected = (tasks: ReadonlyArray<SuggestionTask>) => {
    const denied = tasks.find(isDenied)
    if (denied !== undefined) show(deniedMessage(denied))
    approveAll(tasks.filter((task) => !isDenied(task)))
  }
  const approveCurrent = (task: SuggestionTask | undefined) => {
    if (task === undefined) return
    if (isGone(task)) show(goneMessage)
    else if (isDenied(task)) show(deniedMessage(task))
    else approveAll([task])
  }
  const select = () => {
    const task = shown.find(({ id }) => id === markedId)
    if (task !== undefined) dispatch({ type: "toggled", id: task.id })
  }
  const edit = (task: SuggestionTask | undefined) => {
    if (task === undefined) return
    const { type } = task.payload.suggestedChanges
    if (isGone(task)) show(goneMessage)
    else if (isDenied(task)) show(deniedMessage(task))
    else if (type === "delete" || type === "deleteRelationship") show(deletionToEdit)
    else if ((editFields(task.payload.suggestedChanges)?.length ?? 0) === 0) show(nothingToEdit)
    else setEdited(task)
  }
  const lookAgain = (task: SuggestionTask | undefined) => {
    if (task === undefined) return
    if (isGone(task)) show(goneFromView)
    else if (hasMovedSince(task) && !isLookedAtAgain(task)) askAgain(task)
    else show(nothingMoved)
  }
  const selectGroup = () => {
    const group = groups.find((each) => each.tasks.some(({ id }) => id === markedId))
    if (group === undefined) return
    const ids = group.tasks.map(({ id }) => id)
    dispatch({ type: "selectedAll", ids, isSelected: !ids.every((id) => inbox.selected.has(id)) })
  }
  const editing = {
    // Also when it has left the list: what is written into it is not lost by that.
    task: shown.find(({ id }) => id === edited?.id) ?? edited,
    approve: (task: SuggestionTask, data: Properties) =>
      decide("approve", [task], { edit: data }).then((refusals) => refusals.get(task.id)),
    /** The answer of an approval comes late: another one may be edited by then. */
    done: (taskId: string) => setEdited((before) => (before?.id === taskId ? undefined : before)),
    cancel: () => setEdited(undefined)
  }
  const { goOn, place } = usePlace(inbox, dispatch)
  return {
    pending,
    ...kinds,
    groups,
    shown,
    order,
    inbox,
    markedId,
    dispatch,
    decide,
    rejection,
    editing,
    goOn,
    place,
    askingId,
    actions,
    perform
  }
}

/** What is about to be rejected, between the first key and the reason. */
const useRejection = () => {
  const [tasks, ask] = useState<ReadonlyArray<SuggestionTask>>(noSuggestions)
  /** The last reason that was not taken, and for what: it need not be written again. */
  const [kept, keep] = useState({ reason: "", ids: new Set<string>() })
  return {
    tasks,
    ask,
    close: () => ask(noSuggestions),
    reason: tasks.every(({ id }) => kept.ids.has(id)) ? kept.reason : "",
    keep
  }
}

/** Where the person is, and how the place is given back. */
const usePlace = ({ currentId }: InboxState, dispatch: Dispatch<InboxEvent>) => {
  /** A dialog holds the focus until it is gone; only then can it be given back, to whichever is the current one by then. */
  const goOn = () => dispatch({ type: "wentOn" })
  const place: Place = useMemo(
    () => ({
      currentId,
      enter: (id) => dispatch({ type: "entered", id }),
      stay: (id) => dispatch({ type: "stayed", id })
    }),
    [currentId, dispatch]
  )
  return { goOn, place }
}

/** Opens the task that a link leads to, once, and leaves the link when it is decided here. */
const useLinkedTask = (
  taskId: string | undefined,
  { order, deciding }: InboxState,
  dispatch: Dispatch<InboxEvent>
): void => {
  const opened = useRef<string>(undefined)
  const navigate = useNavigate()
  const isListed = taskId !== undefined && order.includes(taskId)
  const isDeciding = taskId !== undefined && deciding.has(taskId)
  useEffect(() => {
    if (taskId === undefined || !isListed || opened.current === taskId) return
    opened.current = taskId
    dispatch({ type: "opened", id: taskId })
  }, [taskId, isListed, dispatch])
  useEffect(() => {
    // The page is the same one: whoever is far down stays there.
    if (isDeciding) navigate({ to: "/", search: (search) => search, replace: true, resetScroll: false })
  }, [isDeciding, navigate])
}
