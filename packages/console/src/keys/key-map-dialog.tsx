/**
 * The keys of the page and of the console in one dialog, and the switch that turns them off.
 *
 * Single keys get in the way of speech input and of some assistive tools, so
 * they can be switched off; everything they do can be done with Tab and Enter.
 */
import type { ReactNode } from "react"
import { Key } from "../parts/button.tsx"
import { DialogFrame } from "../parts/dialog-frame.tsx"
import { type KeyTable, useKeyMap } from "./key-map.ts"

/** `own` are the console's keys; those of the page come first. */
export const KeyMapDialog = ({ own }: { readonly own: KeyTable }): ReactNode => {
  const { isOpen, areKeysOn, switchKeys, close, tables } = useKeyMap()
  return (
    <DialogFrame isOpen={isOpen} title="Keyboard" onClose={close} returnsFocus>
      {isOpen && [...tables(), own].map((table) => <Table key={table.title} table={table} />)}
      <label className="mt-5 flex items-center gap-3 border-t border-line pt-4 text-sm">
        <input
          type="checkbox"
          checked={areKeysOn}
          onChange={(event) => switchKeys(event.target.checked)}
          className="size-4 accent-leaf"
        />
        Enable keyboard shortcuts
      </label>
    </DialogFrame>
  )
}

const Table = ({ table }: { readonly table: KeyTable }): ReactNode => (
  <section className="mt-5">
    <h3 className="text-xs font-semibold text-ink-faint">{table.title}</h3>
    <dl className="mt-2.5 grid grid-cols-[auto_1fr] items-center gap-x-5 gap-y-2.5 text-sm">
      {table.keys.map(({ shown, means }) => (
        <div key={means} className="contents">
          <dt className="flex gap-1">
            {shown.map((key, place) => (
              // The same key may be pressed twice; the keys of one line never move.
              <Key key={place}>{key}</Key>
            ))}
          </dt>
          <dd className="text-ink-soft">{means}</dd>
        </div>
      ))}
    </dl>
  </section>
)
