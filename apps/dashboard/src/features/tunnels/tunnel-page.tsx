// Page of a tunnel: a summary line, then panels by protocol (requests and health, flows, or peers). Details come last.
import { useQuery } from '@tanstack/react-query';
import { Link, useCanGoBack, useParams, useRouter } from '@tanstack/react-router';
import type { ShownProtocol, TunnelLogEntry } from '@tunnel/contract';
import { lazy, type ReactNode, Suspense, useState } from 'react';
import { useApi } from '../../api/app-context.tsx';
import { Loaded, PanelBoundary } from '../../shared/panel-boundary.tsx';
import { addressOf, hasAddress } from '../../shared/tunnel-address.ts';
import { Button, buttonClass, CopyButton } from '../../ui/button.tsx';
import { Card, Skeleton } from '../../ui/card.tsx';
import { Empty } from '../../ui/empty-state.tsx';
import { Icon } from '../../ui/icon.tsx';
import { useKeys } from '../../ui/keyboard.ts';
import { PageHead } from '../../ui/page-head.tsx';
import { isFault } from '../../ui/problem.tsx';
import { HealthPanel } from './health-panel.tsx';
import { tunnelQuery } from './queries.ts';
import { RequestsPanel } from './requests-panel.tsx';
import { TunnelDetails } from './tunnel-details.tsx';
import { TunnelSummary } from './tunnel-summary.tsx';
import { AskToStop } from './use-stop.tsx';

export const TunnelPage = () => {
  const api = useApi();
  const { id } = useParams({ from: '/shell/tunnels/$id' });
  const tunnel = useQuery(tunnelQuery(api, id));
  useKeys({ onEscape: useLeave() });
  return (
    <>
      <PageHead
        title={titleOf(tunnel.data)}
        above={
          <Link
            to="/tunnels"
            className="mb-2 inline-flex items-center gap-1 rounded-sm text-muted text-sm hover:text-ink"
          >
            <Icon name="back" className="size-3.5" />
            Tunnels
          </Link>
        }
        {...(tunnel.data === undefined
          ? { below: <Skeleton className="mt-2 h-[1.375rem] w-96" /> }
          : { actions: <HeadActions entry={tunnel.data} />, below: <TunnelSummary entry={tunnel.data} /> })}
      />
      {isFault(tunnel.error, 'TUNNEL_UNKNOWN') ? (
        <NoTunnel />
      ) : (
        <Loaded query={tunnel} title="Couldn't load this tunnel" pending={<Pending />}>
          {(entry) => <TunnelPanels entry={entry} />}
        </Loaded>
      )}
    </>
  );
};

const TunnelPanels = ({ entry }: { readonly entry: TunnelLogEntry }) => (
  <div className="space-y-6">
    {PANELS[entry.protocol](entry)}
    <PanelBoundary>
      <TunnelDetails entry={entry} />
    </PanelBoundary>
  </div>
);

/** Panels that are loaded when first needed, to keep the page's initial code small. */
const FlowsPanel = lazy(async () => ({ default: (await import('./flows-panel.tsx')).FlowsPanel }));
const PolicyPanel = lazy(async () => ({ default: (await import('./policy-panel.tsx')).PolicyPanel }));
const PeersPanel = lazy(async () => ({ default: (await import('./peers-panel.tsx')).PeersPanel }));

/** Panels by protocol. UDP and p2p tunnels have no health checks. */
const PANELS: Readonly<Record<ShownProtocol, (entry: TunnelLogEntry) => ReactNode>> = {
  http: (entry) => (
    <>
      <RequestsPanel entry={entry} />
      <AccessPanel entry={entry} />
      <HealthPanel entry={entry} />
    </>
  ),
  tcp: (entry) => (
    <>
      <AccessPanel entry={entry} />
      <HealthPanel entry={entry} />
    </>
  ),
  udp: (entry) => (
    <>
      <LazyPanel>
        <FlowsPanel entry={entry} />
      </LazyPanel>
      <AccessPanel entry={entry} />
    </>
  ),
  p2p: (entry) => (
    <LazyPanel>
      <PeersPanel entry={entry} />
    </LazyPanel>
  ),
};

/** Panel with the access rules. Hidden for ended tunnels, because rules are known only while a tunnel is live. */
const AccessPanel = ({ entry }: { readonly entry: TunnelLogEntry }) =>
  entry.unregistered_at === null && (
    <PanelBoundary>
      <Suspense fallback={<Skeleton className="h-44 w-full" />}>
        <PolicyPanel entry={entry} />
      </Suspense>
    </PanelBoundary>
  );

const LazyPanel = ({ children }: { readonly children: ReactNode }) => (
  <PanelBoundary>
    <Suspense fallback={<Skeleton className="h-80 w-full" />}>{children}</Suspense>
  </PanelBoundary>
);

/**
 * Returns a function that goes back to the tunnel list. The browser history restores the list's filter and scroll position. If the page
 * was opened by its URL, the function opens the unfiltered list.
 */
const useLeave = (): (() => void) => {
  const { history, navigate } = useRouter();
  const canGoBack = useCanGoBack();
  return () => (canGoBack ? history.back() : void navigate({ to: '/tunnels' }));
};

const HeadActions = ({ entry }: { readonly entry: TunnelLogEntry }) => {
  const [stopped, setStopped] = useState<readonly TunnelLogEntry[] | null>(null);
  const { text, href } = addressOf(entry);
  if (entry.unregistered_at !== null) return null;
  return (
    <>
      {hasAddress(entry) && <CopyButton text={text} label={href === null ? 'Copy address' : 'Copy URL'} showLabel />}
      {href !== null && (
        <a href={href} target="_blank" rel="noreferrer" className={buttonClass('secondary', 'small')}>
          <Icon name="outside" />
          Open
        </a>
      )}
      <Button size="small" onClick={() => setStopped([entry])}>
        <Icon name="stop" />
        Stop
      </Button>
      {stopped !== null && <AskToStop tunnels={stopped} onClose={() => setStopped([])} />}
    </>
  );
};

const NoTunnel = () => (
  <Card padded={false}>
    <Empty
      icon="tunnels"
      title="Tunnel not found"
      action={
        <Link to="/tunnels" className={buttonClass('secondary')}>
          Show all tunnels
        </Link>
      }
    >
      <p>The tunnel does not exist or belongs to another account.</p>
    </Empty>
  </Card>
);

const titleOf = (entry: TunnelLogEntry | undefined): string => {
  if (entry === undefined) return 'Tunnel';
  return addressOf(entry).text;
};

const Pending = () => <Skeleton className="h-80 w-full" />;
