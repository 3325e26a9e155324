// Keyboard shortcuts for every page: Ctrl-K (Cmd-K on a Mac) opens the search, `?` opens the list of shortcuts. Both dialogs are loaded
// when first needed.
import { type ComponentType, useEffect, useState } from 'react';
import { Icon } from '../../ui/icon.tsx';
import { isTaken, modifierName, shortcutForKey } from '../../ui/keyboard.ts';

export interface ShortcutDialogProps {
  readonly onClose: () => void;
}

type ShortcutDialog = ComponentType<ShortcutDialogProps>;

const LOAD = {
  search: async (): Promise<ShortcutDialog> => (await import('./palette.tsx')).Palette,
  keys: async (): Promise<ShortcutDialog> => (await import('./keys-dialog.tsx')).KeysDialog,
} as const;

/** The search button, and the dialogs opened by keyboard shortcuts. */
export const Shortcuts = () => {
  const [shown, setShown] = useState<{ readonly Shown: ShortcutDialog } | null>(null);
  const show = (which: keyof typeof LOAD): void => {
    LOAD[which]().then(
      // If another dialog was opened while this dialog was loading, the other dialog stays.
      (Shown) => !isDialogOpen() && setShown({ Shown }),
      // Loading can fail if the platform is unreachable or runs a newer build. No error is shown here, because the next opened page
      // reports the problem.
      () => {},
    );
  };
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent): void => {
      const which = event.defaultPrevented ? null : shortcutForKey(event, isTaken(event.target));
      if (which === null) return;
      // Without preventDefault, the browser would open its own search.
      event.preventDefault();
      if (!isDialogOpen()) show(which);
    };
    document.addEventListener('keydown', onKeyDown);
    return () => document.removeEventListener('keydown', onKeyDown);
  }, []);
  return (
    <>
      <button
        type="button"
        aria-label="Search"
        aria-keyshortcuts="Control+K Meta+K"
        title={`Search (${modifierName()} K)`}
        onClick={() => show('search')}
        className="grid size-9 shrink-0 place-items-center rounded-md text-muted hover:bg-sunken hover:text-ink"
      >
        <Icon name="search" />
      </button>
      {shown !== null && <shown.Shown onClose={() => setShown(null)} />}
    </>
  );
};

const isDialogOpen = (): boolean => document.querySelector('dialog[open]') !== null;
