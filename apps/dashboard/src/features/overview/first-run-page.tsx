// For an account that never had a tunnel: three commands, each of which turns green when it has happened.
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { TunnelLogEntry } from '@tunnel/contract';
import type { ReactNode } from 'react';
import { useApi } from '../../app/app-context.tsx';
import {
  createKeyCommand,
  httpTunnelCommand,
  localServiceCommand,
  loginCommand,
  publicAddress,
} from '../../app/client-commands.ts';
import { PanelBoundary } from '../../app/panel-boundary.tsx';
import { meQuery, regionsQuery, useServer } from '../../app/queries.ts';
import { Notice, type Tone } from '../../ui/badge.tsx';
import { Button, buttonClass } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { classNames } from '../../ui/class-names.ts';
import { CommandLine } from '../../ui/empty-state.tsx';
import { Icon } from '../../ui/icon.tsx';
import { PageHead } from '../../ui/page-head.tsx';
import { type FirstRun, type FirstRunData, readFirstRun, type Step } from './first-run.ts';
import { firstRunQuery } from './queries.ts';

const PORT = 3000;
const NOTHING: FirstRunData = { keys: [], tunnel: undefined, requests: [] };

export const FirstRunPage = ({ onLeave }: { readonly onLeave: () => void }) => {
  const data = useQuery(firstRunQuery(useApi())).data ?? NOTHING;
  const run = readFirstRun(data);
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
        {data.tunnel !== undefined && (
          <div className="mt-6 max-w-3xl">
            <Visit tunnel={data.tunnel} run={run} />
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

const VISITS: Record<FirstRun['visit'], { readonly tone: Tone; readonly text: string }> = {
  none: { tone: 'accent', text: 'Now visit it.' },
  lost: { tone: 'warn', text: 'A visitor came to your tunnel, but no service answered.' },
  answered: { tone: 'good', text: 'Your first request came through.' },
};

const Visit = ({ tunnel, run }: { readonly tunnel: TunnelLogEntry; readonly run: FirstRun }) => {
  const regions = useQuery(regionsQuery(useApi())).data;
  const address = publicAddress(
    tunnel,
    regions?.find(({ region_id }) => region_id === tunnel.region_id),
  );
  return (
    <Notice tone={VISITS[run.visit].tone} live>
      <p className="font-medium">{VISITS[run.visit].text}</p>
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

interface FirstRunStepProps {
  readonly number: number;
  readonly title: string;
  readonly step: Step;
  readonly children: ReactNode;
}

/** Its number turns into a mark when it is done. */
const FirstRunStep = ({ number, title, step, children }: FirstRunStepProps) => (
  <li data-step={number} data-done={step.isDone} className="flex gap-4">
    <span
      aria-hidden="true"
      className={classNames(
        'grid size-7 shrink-0 place-items-center rounded-full border font-medium text-sm transition-colors duration-300',
        step.isDone ? 'border-good bg-good-soft text-good' : 'border-line bg-page text-muted',
      )}
    >
      {step.isDone ? <Icon name="check" className="size-4" /> : number}
    </span>
    <div className="min-w-0 flex-1">
      <h2 className="mt-0.5 mb-2 font-semibold">{title}</h2>
      {children}
      <p role="status" className={classNames('mt-2 flex items-center gap-2 text-sm', noteClass(step))}>
        {!step.isDone && step.isTrouble !== true && (
          <span aria-hidden="true" className="size-1.5 shrink-0 animate-pulse rounded-full bg-current" />
        )}
        <span>
          {step.isDone && <span className="font-medium">Done. </span>}
          {step.note}
        </span>
      </p>
    </div>
  </li>
);

const noteClass = ({ isDone, isTrouble }: Step): string => {
  if (isDone) return 'text-good';
  return isTrouble === true ? 'text-warn' : 'text-muted';
};
