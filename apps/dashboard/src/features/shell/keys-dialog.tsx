// Dialog that lists the dashboard's keyboard shortcuts.

import { Dialog } from '../../ui/dialog.tsx';
import { modifierName } from '../../ui/keyboard.ts';
import type { ShortcutDialogProps } from './shortcuts.tsx';

interface KeyHelp {
  readonly keys: readonly string[];
  readonly text: string;
}

const keyHelp = (): readonly { readonly title: string; readonly rows: readonly KeyHelp[] }[] => [
  {
    title: 'Everywhere',
    rows: [
      { keys: [`${modifierName()} K`], text: 'Search pages, tunnels and domains' },
      { keys: ['?'], text: 'Show keyboard shortcuts' },
      { keys: ['Esc'], text: 'Close a dialog' },
    ],
  },
  {
    title: 'Tunnels and requests',
    rows: [
      { keys: ['j', 'k'], text: 'Next, previous' },
      { keys: ['Enter'], text: 'Open' },
      { keys: ['Esc'], text: 'Back to the list' },
    ],
  },
];

export const KeysDialog = ({ onClose }: ShortcutDialogProps) => (
  <Dialog open onClose={onClose} title="Keyboard shortcuts">
    {keyHelp().map(({ title, rows }) => (
      <section key={title} aria-label={title}>
        <h3 className="mb-1 font-semibold text-sm">{title}</h3>
        <dl className="divide-y divide-line">
          {rows.map(({ keys, text }) => (
            <div key={text} className="flex items-center justify-between gap-4 py-1.5">
              <dt>{text}</dt>
              <dd className="flex gap-1.5">
                {keys.map((key) => (
                  <kbd key={key} className="rounded-md border border-line bg-sunken px-2 py-0.5 font-mono text-sm">
                    {key}
                  </kbd>
                ))}
              </dd>
            </div>
          ))}
        </dl>
      </section>
    ))}
  </Dialog>
);
