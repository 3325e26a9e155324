// The question on the consent page. Shows the app's host above its self-declared name. The user can remove permissions, then allow or
// deny.
import { useQuery } from '@tanstack/react-query';
import type { OauthDecision, OauthRequest, OauthScope } from '@tunnel/contract';
import { Fragment, type ReactNode, useState } from 'react';
import { useApp } from '../../api/app-context.tsx';
import { meQuery } from '../../api/queries.ts';
import { isLoopback } from '../../shared/client-commands.ts';
import { SCOPE_TEXTS } from '../../shared/scope-texts.ts';
import { Notice } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { CheckField } from '../../ui/field.tsx';
import { MaybeProblem } from '../../ui/problem.tsx';
import { AuthCard } from '../auth/layout.tsx';

export interface QuestionProps {
  readonly request: OauthRequest;
  /** Answer being sent: true to allow, false to deny. Null while no answer is being sent. */
  readonly answer: boolean | null;
  /** Error of an answer that could not be sent. */
  readonly error: unknown;
  readonly onAnswer: (decision: OauthDecision) => void;
}

export const Question = ({ request, answer, error, onAnswer }: QuestionProps) => {
  const [scopes, setScopes] = useState<readonly OauthScope[]>(request.scopes);
  const isNone = scopes.length === 0;
  const isBusy = answer !== null;
  return (
    <AuthCard
      title={`Connect ${request.client_host}`}
      heading={
        <>
          <span className="block font-normal text-base text-muted tracking-normal">
            An app wants to connect to your Hatchway account
          </span>
          <span className="wrap-anywhere block text-2xl">
            <Host name={request.client_host} />
          </span>
        </>
      }
      description={<Name request={request} />}
    >
      <Facts request={request} />
      <Scopes asked={request.scopes} {...{ scopes, setScopes, isBusy }} />
      {isOnThisComputer(request) && (
        <Notice tone="warn">Allow access only if you just started connecting from a program on this computer.</Notice>
      )}
      <MaybeProblem error={error} />
      <div className="grid grid-cols-2 gap-3">
        <Button
          className="h-10!"
          pending={answer === false}
          disabled={answer === true}
          onClick={() => onAnswer({ allow: false })}
        >
          Deny
        </Button>
        <Button
          kind="primary"
          className="h-10!"
          pending={answer === true}
          disabled={answer === false || isNone}
          onClick={() => onAnswer({ allow: true, scopes: [...scopes] })}
        >
          Allow
        </Button>
      </div>
      <p role="status" className="text-muted text-sm">
        {isNone
          ? 'Choose at least one permission, or deny access.'
          : 'You can disconnect the app at any time in Settings.'}
      </p>
    </AuthCard>
  );
};

/** A host name with line breaks allowed only before dots. Broken at other places, part of the name could read like a different host. */
const Host = ({ name }: { readonly name: string }) =>
  name.split('.').map((label, index) => (
    <Fragment key={index}>
      {index > 0 && (
        <>
          <wbr />.
        </>
      )}
      {label}
    </Fragment>
  ));

const isOnThisComputer = ({ redirect_host: host }: OauthRequest): boolean => isLoopback(host.replace(/:\d+$/, ''));

/**
 * Returns whether the operator registered the app and so vouches for its name. Other apps have a URL as client ID, and the page shows the
 * URL's host instead of a name.
 */
const isRegistered = ({ client_id }: OauthRequest): boolean => !/^https?:/.test(client_id);

const Name = ({ request }: { readonly request: OauthRequest }) => {
  const { client_host, client_name } = request;
  if (isRegistered(request)) return <>Registered by the operator of this server.</>;
  if (client_name === client_host) return <>The app gave no name.</>;
  return (
    <>
      The app calls itself <bdi className="wrap-anywhere">“{client_name}”</bdi>. The name is not verified.
    </>
  );
};

const Facts = ({ request }: { readonly request: OauthRequest }) => (
  <dl className="space-y-3 border-line border-y py-4">
    <Fact name="Your account">
      <AccountInUse />
    </Fact>
    <Fact name="Redirects to">
      <Host name={request.redirect_host} />
      {isOnThisComputer(request) && ', this computer'}
    </Fact>
    {!isRegistered(request) && (
      <Fact name="App ID">
        <span className="font-mono text-sm">{request.client_id}</span>
      </Fact>
    )}
  </dl>
);

const Fact = ({ name, children }: { readonly name: string; readonly children: ReactNode }) => (
  <div className="sm:flex">
    <dt className="text-muted text-sm sm:w-36 sm:shrink-0 sm:leading-[1.375rem]">{name}</dt>
    <dd className="wrap-anywhere min-w-0 flex-1">{children}</dd>
  </div>
);

/** The signed-in account, with a button to switch accounts. The sign-in page returns to this question. */
const AccountInUse = () => {
  const { api, session } = useApp();
  const email = useQuery(meQuery(api)).data?.email;
  return (
    <span className="flex flex-wrap items-center justify-between gap-x-3">
      <span className="wrap-anywhere min-w-0">{email ?? '\u00a0'}</span>
      <button
        type="button"
        onClick={() => void session.signOut().catch(() => {})}
        className="rounded-sm font-medium text-accent text-sm underline-offset-4 hover:underline"
      >
        Use another account
      </button>
    </span>
  );
};

interface ScopesProps {
  readonly asked: readonly OauthScope[];
  readonly scopes: readonly OauthScope[];
  readonly setScopes: (scopes: readonly OauthScope[]) => void;
  readonly isBusy: boolean;
}

const Scopes = ({ asked, scopes, setScopes, isBusy }: ScopesProps) => (
  <fieldset className="min-w-0">
    <legend className="mb-3 font-semibold">Permissions</legend>
    <div className="space-y-3">
      {asked.map((scope) => (
        <CheckField
          key={scope}
          name={scope}
          label={SCOPE_TEXTS[scope].title}
          hint={SCOPE_TEXTS[scope].detail}
          checked={scopes.includes(scope)}
          disabled={isBusy}
          onChange={(wanted) => setScopes(asked.filter((one) => (one === scope ? wanted : scopes.includes(one))))}
        />
      ))}
    </div>
  </fieldset>
);
