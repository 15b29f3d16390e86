/**
 * Makes an object by hand.
 */
import type { GraphObject } from "@tropism/domain/graph"
import { useNavigate } from "@tanstack/react-router"
import { type ReactNode, useState } from "react"
import { FormDialog } from "../parts/form-dialog.tsx"
import { TextField } from "../parts/form-fields.tsx"
import { useWrite } from "../server/use-write.ts"
import { writtenValue } from "./object-words.ts"

export const NewObject = ({ onClose }: { readonly onClose: () => void }): ReactNode => {
  const navigate = useNavigate()
  const [type, setType] = useState("")
  const [key, setKey] = useState("")
  const [text, setText] = useState("{}")
  const [isRefused, setIsRefused] = useState(false)
  const { run, isBusy, error } = useWrite<GraphObject>(({ id }) =>
    navigate({ to: "/objects/$objectId", params: { objectId: id } })
  )
  const make = () => {
    const written = writtenValue(text, "json")
    setIsRefused(written === undefined)
    if (written === undefined) return
    run({
      path: "objects",
      method: "POST",
      body: { type, ...(key !== "" && { key }), properties: written.value }
    })
  }
  return (
    <FormDialog
      title="New object"
      verb="Make it"
      isBusy={isBusy}
      isReady={type !== ""}
      error={error}
      pointers={["/type", "/key", "/properties"]}
      onSubmit={make}
      onClose={onClose}
    >
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
    </FormDialog>
  )
}
