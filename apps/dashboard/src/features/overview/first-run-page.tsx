// For an account that never had a tunnel: three commands, each of which turns green when it has happened.
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { TunnelLogEntry } from '@tunnel/contract';
import { useApi } from '../../app/app-context.tsx';
import {
  createKeyCommand,
  httpTunnelCommand,
  localServiceCommand,
  loginCommand,
  publicAddress,
} from '../../app/client-commands.ts';
import { meQuery } from '../../app/me-query.ts';
import { PanelBoundary } from '../../app/panel-boundary.tsx';
import { regionsQuery } from '../../app/regions-query.ts';
import { useServer } from '../../app/use-server.ts';
import type { Tone } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { buttonClass } from '../../ui/button-class.ts';
import { Card } from '../../ui/card.tsx';
import { CommandLine } from '../../ui/command-line.tsx';
import { Notice } from '../../ui/notice.tsx';
import { PageHead } from '../../ui/page-head.tsx';
import { type FirstRun, type FirstRunFacts, readFirstRun } from './first-run.ts';
import { FirstRunStep } from './first-run-step.tsx';
import { firstRunQuery } from './queries.ts';

const PORT = 3000;
const NOTHING: FirstRunFacts = { keys: [], tunnel: undefined, requests: [] };

export const FirstRunPage = ({ onLeave }: { readonly onLeave: () => void }) => {
  const facts = useQuery(firstRunQuery(useApi())).data ?? NOTHING;
  const run = readFirstRun(facts);
  return (
    <>
      <PageHead
        title="Put something on the internet"
        description="Three commands in a checkout. Each turns green when it has happened."
        actions={
          <Button kind={run.visit === 'answered' ? 'primary' : 'quiet'} onClick={onLeave}>
            {run.visit === 'answered' ? 'Go to the overview' : 'Skip'}
          </Button>
        }
      />
      <PanelBoundary>
        <Card className="max-w-3xl">
          <Steps run={run} />
        </Card>
        {facts.tunnel !== undefined && (
          <div className="mt-6 max-w-3xl">
            <Visit tunnel={facts.tunnel} run={run} />
          </div>
        )}
      </PanelBoundary>
    </>
  );
};

const Steps = ({ run }: { readonly run: FirstRun }) => {
  const api = useApi();
  const email = useQuery(meQuery(api)).data?.email ?? 'you@example.com';
  const regions = useQuery(regionsQuery(api)).data;
  const server = useServer();
  const login = loginCommand(window.location.origin, email);
  return (
    <ol className="space-y-8">
      <FirstRunStep number={1} title="Log in and make a key" step={run.key}>
        <CommandLine command={`${login} && ${createKeyCommand('first')}`} label="Copy the command that makes a key" />
        <p className="mt-2 text-muted text-sm">
          It asks for your password and keeps the key in <code className="font-mono">~/.tunnel</code>. Or make one{' '}
          <Link to="/keys" className="rounded-sm text-accent underline underline-offset-2">
            on the page of keys
          </Link>
          .
        </p>
      </FirstRunStep>
      <FirstRunStep number={2} title={`Start something on port ${PORT}`} step={run.service}>
        <CommandLine command={localServiceCommand(PORT)} label="Copy the command that starts a service" />
        <p className="mt-2 text-muted text-sm">A small web server; leave it running. Your own service will do too.</p>
      </FirstRunStep>
      <FirstRunStep number={3} title="Publish it" step={run.tunnel}>
        <CommandLine
          command={server === null ? null : httpTunnelCommand(PORT, server)}
          label="Copy the command that starts a tunnel"
        />
        <p className="mt-2 text-muted text-sm">In another terminal. The tunnel lives for as long as it runs.</p>
        {regions?.length === 0 && (
          <div className="mt-3">
            <Notice tone="warn">No edge is connected to this platform right now, so a tunnel has nowhere to go.</Notice>
          </div>
        )}
      </FirstRunStep>
    </ol>
  );
};

const VISITS: Record<FirstRun['visit'], { readonly tone: Tone; readonly words: string }> = {
  none: { tone: 'accent', words: 'Now visit it.' },
  lost: { tone: 'warn', words: 'A visitor came to your tunnel, but no service answered.' },
  answered: { tone: 'good', words: 'Your first request came through.' },
};

const Visit = ({ tunnel, run }: { readonly tunnel: TunnelLogEntry; readonly run: FirstRun }) => {
  const regions = useQuery(regionsQuery(useApi())).data;
  const address = publicAddress(
    tunnel,
    regions?.find(({ region_id }) => region_id === tunnel.region_id),
  );
  return (
    <Notice tone={VISITS[run.visit].tone} live>
      <p className="font-medium">{VISITS[run.visit].words}</p>
      {address !== null && tunnel.unregistered_at === null && (
        <p className="mt-1">
          <a
            href={address}
            target="_blank"
            rel="noreferrer"
            className="break-all rounded-sm text-accent underline underline-offset-2"
          >
            {address}
          </a>
        </p>
      )}
      {run.visit !== 'none' && (
        <p className="mt-3">
          <Link to="/tunnels/$id" params={{ id: tunnel.id }} className={buttonClass('secondary', 'small')}>
            See the request
          </Link>
        </p>
      )}
    </Notice>
  );
};
