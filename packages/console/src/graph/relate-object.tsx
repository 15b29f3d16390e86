/**
 * Relates an object to another, which is found by words.
 */
import type { Relationship } from "@tropism/domain/graph"
import { type ReactNode, useState } from "react"
import { useChosenObject } from "../parts/choose-object.tsx"
import { FormDialog } from "../parts/form-dialog.tsx"
import { ChoiceField, TextField } from "../parts/form-fields.tsx"
import { useWrite } from "../server/use-write.ts"

interface RelateObjectProps {
  readonly objectId: string
  readonly onClose: () => void
}

export const RelateObject = ({ objectId, onClose }: RelateObjectProps): ReactNode => {
  const [type, setType] = useState("")
  const [direction, setDirection] = useState("out")
  const { objectId: otherId, fields } = useChosenObject("the other object", objectId)
  const { run, isBusy, error } = useWrite<Relationship>("Add relationship", onClose)
  const relate = () => {
    const [fromId, toId] = direction === "out" ? [objectId, otherId] : [otherId, objectId]
    run({ path: "relationships", method: "POST", body: { type, fromId, toId } })
  }
  return (
    <FormDialog
      title="Add relationship"
      verb="Add"
      isBusy={isBusy}
      isReady={otherId !== "" && type !== ""}
      error={error}
      pointers={["/type"]}
      onSubmit={relate}
      onClose={onClose}
    >
      <TextField
        label="Type"
        hint="e.g. DEPENDS_ON"
        pointer="/type"
        error={error}
        value={type}
        onChange={setType}
        isRequired
        hasFirstFocus
      />
      <ChoiceField
        label="Direction"
        value={direction}
        choices={[
          { value: "out", label: "From this object" },
          { value: "in", label: "To this object" }
        ]}
        onChange={setDirection}
      />
      {fields}
    </FormDialog>
  )
}
