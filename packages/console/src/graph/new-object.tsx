/**
 * Makes an object by hand.
 */
import type { GraphObject } from "@tropism/domain/graph"
import { useNavigate } from "@tanstack/react-router"
import { type ReactNode, type SubmitEvent, useState } from "react"
import { Button } from "../parts/button.tsx"
import { DialogFrame } from "../parts/dialog-frame.tsx"
import { Failure } from "../parts/failure.tsx"
import { TextField } from "../parts/form-fields.tsx"
import { writtenValue } from "./object-words.ts"
import { useGraphWrite } from "./use-graph-write.ts"

export const NewObject = ({ onClose }: { readonly onClose: () => void }): ReactNode => {
  const navigate = useNavigate()
  const [type, setType] = useState("")
  const [key, setKey] = useState("")
  const [text, setText] = useState("{}")
  const [isRefused, setIsRefused] = useState(false)
  const { mutate, isPending, error } = useGraphWrite<GraphObject>(({ id }) =>
    navigate({ to: "/objects/$objectId", params: { objectId: id } })
  )
  const make = (event: SubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    const written = writtenValue(text, "json")
    setIsRefused(written === undefined)
    if (written === undefined) return
    mutate({
      path: "objects",
      request: {
        method: "POST",
        body: { type, ...(key !== "" && { key }), properties: written.value }
      }
    })
  }
  return (
    <DialogFrame isOpen title="New object" onClose={onClose} returnsFocus>
      <form onSubmit={make} className="mt-4 grid gap-4">
        <TextField
          label="Type"
          hint="A name such as Person"
          pointer="/type"
          error={error}
          value={type}
          onChange={setType}
          isRequired
          hasFirstFocus
        />
        <TextField
          label="Key"
          hint="A name that finds it again; it may have none"
          pointer="/key"
          error={error}
          value={key}
          onChange={setKey}
        />
        <TextField
          label="Properties"
          hint="A JSON object"
          pointer="/properties"
          error={error}
          value={text}
          onChange={setText}
          lines={6}
          isMono
        />
        {isRefused && (
          <p role="alert" className="text-sm text-removed-ink">
            This is no JSON.
          </p>
        )}
        {error !== null && <Failure error={error} />}
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Close</Button>
          <Button type="submit" weight="primary" disabled={isPending || type === ""}>
            Make it
          </Button>
        </div>
      </form>
    </DialogFrame>
  )
}
