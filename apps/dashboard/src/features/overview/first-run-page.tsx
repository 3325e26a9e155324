// Getting-started page for an account that has never had a visitor. Shows three commands, each with a check mark once completed, and the
// public URL next to them.
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { TunnelLogEntry } from '@tunnel/contract';
import { type ReactNode, useState } from 'react';
import { useApi } from '../../api/app-context.tsx';
import { meQuery, regionsQuery } from '../../api/queries.ts';
import { httpTunnelCommand, localServiceCommand, loginCommand } from '../../shared/client-commands.ts';
import { InstallClient } from '../../shared/install-client.tsx';
import { PanelBoundary } from '../../shared/panel-boundary.tsx';
import { addressOf } from '../../shared/tunnel-address.ts';
import { AddressTools } from '../../ui/address-tools.tsx';
import { Notice } from '../../ui/badge.tsx';
import { Button, buttonClass } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { classNames } from '../../ui/class-names.ts';
import { CommandLine } from '../../ui/empty-state.tsx';
import { TextField } from '../../ui/field.tsx';
import { Icon } from '../../ui/icon.tsx';
import { PageHead } from '../../ui/page-head.tsx';
import { type FirstRun, type FirstRunData, readFirstRun, type Step } from './first-run.ts';
import { firstRunQuery } from './queries.ts';

const USUAL_PORT = 3000;
const PORT_MAX = 65_535;
const NOTHING: FirstRunData = { keys: [], tunnel: undefined, requests: [] };

export const FirstRunPage = ({ onLeave }: { readonly onLeave: () => void }) => {
  const data = useQuery(firstRunQuery(useApi())).data ?? NOTHING;
  const [typed, setTyped] = useState(String(USUAL_PORT));
  const port = portOf(typed);
  const run = readFirstRun(data, port ?? USUAL_PORT);
  const isOver = run.visit === 'answered';
  return (
    <>
      <PageHead
        title="Get started"
        description="Run three commands. This page follows your progress."
        actions={
          <Button kind={isOver ? 'primary' : 'quiet'} onClick={onLeave}>
            {isOver ? 'Go to overview' : 'Skip'}
          </Button>
        }
      />
      <PanelBoundary>
        <div className="grid items-start gap-6 lg:grid-cols-[minmax(0,1fr)_22rem]">
          <Card>
            <Steps {...{ run, port, typed, setTyped }} />
          </Card>
          <Address tunnel={data.tunnel} run={run} />
        </div>
      </PanelBoundary>
    </>
  );
};

/** Parses a port number. Null if the text is not a valid port. */
const portOf = (typed: string): number | null => {
  const port = /^\d{1,5}$/.test(typed.trim()) ? Number(typed) : 0;
  return port >= 1 && port <= PORT_MAX ? port : null;
};

interface StepsProps {
  readonly run: FirstRun;
  readonly port: number | null;
  readonly typed: string;
  readonly setTyped: (text: string) => void;
}

const Steps = ({ run, port, typed, setTyped }: StepsProps) => {
  const email = useQuery(meQuery(useApi())).data?.email;
  return (
    <ol className="space-y-8">
      <FirstRunStep number={1} title="Sign in" step={run.key}>
        <div className="mb-3">
          <InstallClient />
        </div>
        <CommandLine
          command={email === undefined ? null : loginCommand(window.location.origin, email)}
          label="Copy the sign-in command"
        />
        <p className="mt-2 text-muted text-sm">
          You'll be asked for your password. The client saves an API key in <code className="font-mono">~/.tunnel</code>
          . You can also create a key{' '}
          <Link to="/keys" className="rounded-sm text-accent underline underline-offset-2">
            in Keys
          </Link>
          .
        </p>
      </FirstRunStep>
      <FirstRunStep number={2} title="Start a local server" step={run.service}>
        <div className="mb-3 max-w-64">
          <TextField
            label="Already have an app on a port?"
            name="port"
            inputMode="numeric"
            autoComplete="off"
            value={typed}
            hint="Enter the port and skip this command"
            error={port === null ? 'Use a port from 1 to 65535' : null}
            onChange={({ target }) => setTyped(target.value)}
          />
        </div>
        <CommandLine command={port === null ? null : localServiceCommand(port)} label="Copy the server command" />
      </FirstRunStep>
      <FirstRunStep number={3} title="Go live" step={run.tunnel}>
        <CommandLine command={port === null ? null : httpTunnelCommand(port)} label="Copy the tunnel command" />
        <p className="mt-2 text-muted text-sm">Run this in another terminal. Press Ctrl-C to stop the tunnel.</p>
        <NoEdge />
      </FirstRunStep>
    </ol>
  );
};

const NoEdge = () => {
  const regions = useQuery(regionsQuery(useApi())).data;
  if (regions?.length !== 0) return null;
  return (
    <div className="mt-3">
      <Notice tone="warn">No edge is connected right now, so tunnels can't start.</Notice>
    </div>
  );
};

interface AddressProps {
  readonly tunnel: TunnelLogEntry | undefined;
  readonly run: FirstRun;
}

/** Card with the public URL of the new tunnel, and the result of the first visit. */
const Address = ({ tunnel, run }: AddressProps) => (
  <Card title="Your public URL">
    <div role="status" className="space-y-3">
      {tunnel === undefined ? (
        <p className="text-muted">The URL appears here when your tunnel is live.</p>
      ) : (
        <>
          <p className="flex items-center gap-1 font-medium">
            <span className="min-w-0 break-all">{addressOf(tunnel).text}</span>
            {tunnel.unregistered_at === null && <AddressTools {...addressOf(tunnel)} />}
          </p>
          <Visit run={run} isLive={tunnel.unregistered_at === null} />
          {run.visit !== 'none' && (
            <Link to="/tunnels/$id" params={{ id: tunnel.id }} className={buttonClass('secondary', 'small')}>
              View the request
            </Link>
          )}
        </>
      )}
    </div>
  </Card>
);

const Visit = ({ run: { visit }, isLive }: { readonly run: FirstRun; readonly isLive: boolean }) => {
  if (visit === 'answered') return <Notice tone="good">Your first request arrived.</Notice>;
  if (visit === 'lost') return <Notice tone="warn">A request arrived, but your server didn't respond.</Notice>;
  return isLive ? (
    <p>Open the URL to send the first request.</p>
  ) : (
    <p className="text-muted">Your tunnel has stopped.</p>
  );
};

interface FirstRunStepProps {
  readonly number: number;
  readonly title: string;
  readonly step: Step;
  readonly children: ReactNode;
}

/** A step with its number, which becomes a check mark when the step is done. */
const FirstRunStep = ({ number, title, step, children }: FirstRunStepProps) => (
  <li data-step={number} data-done={step.isDone} className="flex gap-3 sm:gap-4">
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
