// Hook for the Stop buttons in a list of tunnels: holds the tunnels to stop and renders the confirmation dialog.
import type { TunnelLogEntry } from '@tunnel/contract';
import { lazy, type ReactNode, Suspense, useCallback, useEffect, useRef, useState } from 'react';
import { type AddressRow, liveTunnelsOf } from './address-rows.ts';

const StopDialog = lazy(async () => ({ default: (await import('./stop-dialog.tsx')).StopDialog }));

interface Stop {
  /** Opens the dialog for the live tunnels of a line of the list. The function never changes, so that rows do not render again. */
  readonly onStop: (lineKey: string) => void;
  /** The dialog, to be rendered once on the page, outside the list. */
  readonly dialog: ReactNode;
}

export const useStop = (rows: readonly AddressRow[] | undefined): Stop => {
  const latest = useRef(rows);
  useEffect(() => {
    latest.current = rows;
  });
  const [tunnels, setTunnels] = useState<readonly TunnelLogEntry[] | null>(null);
  const onStop = useCallback((lineKey: string) => setTunnels(liveTunnelsOf(latest.current ?? [], lineKey)), []);
  return { onStop, dialog: tunnels !== null && <AskToStop tunnels={tunnels} onClose={() => setTunnels(NONE)} /> };
};

const NONE: readonly TunnelLogEntry[] = [];

interface AskToStopProps {
  /** Tunnels to stop. Empty while the dialog is closed. */
  readonly tunnels: readonly TunnelLogEntry[];
  readonly onClose: () => void;
}

/** The confirmation dialog, loaded when first needed. */
export const AskToStop = (props: AskToStopProps) => (
  <Suspense fallback={null}>
    <StopDialog {...props} />
  </Suspense>
);
