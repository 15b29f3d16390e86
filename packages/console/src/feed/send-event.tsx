/**
 * Sends an event: writes an object, as anybody might, and shows which agents it wakes.
 *
 * **Gotchas** The object stays. A press that is sent twice has the same key, so it makes one object.
 */
import type { Page } from "@tropism/api/page"
import type { GraphObject, ObjectVersion } from "@tropism/domain/graph"
import { Link } from "@tanstack/react-router"
import { Effect } from "effect"
import { type ReactNode, useState } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { Button } from "../parts/button.tsx"
import { DialogFrame } from "../parts/dialog-frame.tsx"
import { Failure } from "../parts/failure.tsx"
import { TextField } from "../parts/form-fields.tsx"
import { useFaultFocus } from "../parts/use-fault-focus.ts"
import { Problem } from "../server/problem.ts"
import { call, inProject, queryText } from "../server/request.ts"
import { useAct } from "../server/use-act.ts"
import { WokenList } from "./woken-list.tsx"

interface SendEventProps {
  readonly isOpen: boolean
  readonly onClose: () => void
}

interface Draft {
  readonly type: string
  readonly key: string
  readonly properties: string
}

export const SendEvent = ({ isOpen, onClose }: SendEventProps): ReactNode =>
  isOpen && <SendDialog onClose={onClose} />

const SendDialog = ({ onClose }: Pick<SendEventProps, "onClose">): ReactNode => {
  const { project } = useConsole()
  const [draft, setDraft] = useState<Draft>({ type: "Note", key: "", properties: '{\n  "text": "Hello"\n}' })
  const [eventId, setEventId] = useState<string>()
  const { run, isBusy, error } = useAct({
    what: "Send event",
    act: (written: Draft, key) => send(project.id, written, key),
    touches: [],
    onDone: setEventId
  })
  return (
    <DialogFrame isOpen title="Send event" onClose={onClose} isBusy={isBusy} returnsFocus>
      {eventId === undefined ? (
        <SendForm
          draft={draft}
          isBusy={isBusy}
          error={error}
          onChange={(change) => setDraft((now) => ({ ...now, ...change }))}
          onSend={() => run(draft)}
        />
      ) : (
        <Sent eventId={eventId} onAnother={() => setEventId(undefined)} />
      )}
    </DialogFrame>
  )
}

interface SendFormProps extends FieldsProps {
  readonly isBusy: boolean
  readonly onSend: () => void
}

const SendForm = ({ draft, isBusy, error, onChange, onSend }: SendFormProps): ReactNode => (
  <form
    ref={useFaultFocus(error)}
    className="mt-3 grid gap-4"
    onSubmit={(event) => {
      event.preventDefault()
      onSend()
    }}
  >
    <p className="text-sm text-ink-soft">
      Creates or updates an object in the graph as you. It triggers agents as any other change.
    </p>
    {error !== null && <Failure error={error} />}
    <Fields draft={draft} error={error} onChange={onChange} />
    <div className="flex justify-end">
      <Button type="submit" weight="primary" disabled={isBusy}>
        Send
      </Button>
    </div>
  </form>
)

interface FieldsProps {
  readonly draft: Draft
  readonly error: unknown
  readonly onChange: (change: Partial<Draft>) => void
}

const Fields = ({ draft, error, onChange }: FieldsProps): ReactNode => (
  <>
    <TextField
      label="Type"
      value={draft.type}
      onChange={(type) => onChange({ type })}
      isRequired
      hasFirstFocus
      pointer="/type"
      error={error}
    />
    <TextField
      label="Key"
      hint="Unique key (optional). An existing object with this key is updated; otherwise a new object is created."
      value={draft.key}
      onChange={(key) => onChange({ key })}
      pointer="/key"
      error={error}
    />
    <TextField
      label="Properties"
      hint="JSON object"
      value={draft.properties}
      onChange={(properties) => onChange({ properties })}
      lines={6}
      isMono
      pointer="/properties"
      error={error}
    />
  </>
)

interface SentProps {
  readonly eventId: string
  readonly onAnother: () => void
}

const Sent = ({ eventId, onAnother }: SentProps): ReactNode => (
  <div className="mt-3 grid gap-4">
    <p className="text-sm text-ink-soft">
      The object was saved. Its{" "}
      <Link to="/events/$eventId" params={{ eventId }} className="text-leaf underline underline-offset-2">
        event
      </Link>
      .
    </p>
    <div>
      <WokenList eventId={eventId} />
    </div>
    <div className="flex justify-end">
      <Button onClick={onAnother}>Send another</Button>
    </div>
  </div>
)

/** Writes the object and answers the id of the event of that very version. */
const send = Effect.fnUntraced(function* (projectId: string, written: Draft, requestKey: string) {
  const properties = yield* parsed(written.properties)
  const { key, type } = written
  const object = yield* call<GraphObject>(inProject(projectId, "objects"), {
    method: "POST",
    body: { type, properties, ...(key !== "" && { key }) },
    idempotencyKey: requestKey
  }).pipe(Effect.catchIf(isKeyTaken, () => change(projectId, type, key, properties, requestKey)))
  const { items } = yield* call<Page<ObjectVersion>>(
    inProject(projectId, `objects/${encodeURIComponent(object.id)}/history?limit=20`)
  )
  const version = items.find((one) => one.version === object.version) ?? items[0]
  if (version === undefined)
    return yield* sayFault("", "The object was deleted before its event could be loaded")
  return version.eventId
})

/** Changes the object that has the key. */
const change = Effect.fnUntraced(function* (
  projectId: string,
  type: string,
  key: string,
  properties: unknown,
  requestKey: string
) {
  const { items } = yield* call<Page<GraphObject>>(
    inProject(projectId, `objects${queryText({ type, key, limit: 1 })}`)
  )
  const [object] = items
  if (object === undefined)
    return yield* sayFault("/key", "The object with this key was deleted. Send it again.")
  return yield* call<GraphObject>(inProject(projectId, `objects/${encodeURIComponent(object.id)}`), {
    method: "PATCH",
    body: { properties },
    ifMatch: object.version,
    idempotencyKey: `${requestKey}-change`
  })
})

const isKeyTaken = (error: unknown): boolean =>
  error instanceof Problem && error.document.reason === "keyTaken"

/** Said in the words of the server, so that it stands at its field. */
const sayFault = (pointer: string, message: string) =>
  Effect.fail(new Problem({ status: 422, document: { detail: message, errors: [{ pointer, message }] } }))

const parsed = (text: string): Effect.Effect<unknown, Problem> =>
  Effect.catch(Effect.try({ try: (): unknown => JSON.parse(text), catch: () => "no JSON" as const }), () =>
    sayFault("/properties", 'Invalid JSON. Expected an object, e.g. {"name": "Ada"}')
  )
