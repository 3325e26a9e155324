// Stop in a list of tunnels: the dialog that asks, and the tunnels that it asks about.
import type { TunnelLogEntry } from '@tunnel/contract';
import { lazy, type ReactNode, Suspense, useCallback, useEffect, useRef, useState } from 'react';
import { type AddressRow, liveTunnelsOf } from './address-rows.ts';

const StopDialog = lazy(async () => ({ default: (await import('./stop-dialog.tsx')).StopDialog }));

interface Stop {
  /** Asks about the live tunnels of a line of the list. Always the same function, so that rows are not drawn again. */
  readonly onStop: (lineKey: string) => void;
  /** Belongs on the page once, outside of the list. */
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
  /** Empty: the dialog is closed. */
  readonly tunnels: readonly TunnelLogEntry[];
  readonly onClose: () => void;
}

/** The dialog, loaded when it is first needed. */
export const AskToStop = (props: AskToStopProps) => (
  <Suspense fallback={null}>
    <StopDialog {...props} />
  </Suspense>
);
