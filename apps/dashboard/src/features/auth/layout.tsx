// What the pages before sign-in share: their frame, the card of one step, its form, and what more than one of them does.
import { createLink, Outlet, useLocation, useRouter } from '@tanstack/react-router';
import { type ComponentProps, type ReactNode, useEffect, useRef, useState } from 'react';
import { useSessionState } from '../../api/app-context.tsx';
import { nextPath } from '../../shared/page-url.ts';
import { Button } from '../../ui/button.tsx';
import { classNames } from '../../ui/class-names.ts';
import { PasswordField } from '../../ui/field.tsx';
import { FieldsForm } from '../../ui/fields-form.tsx';
import { Brand, useTitle } from '../../ui/page-head.tsx';
import { Problem } from '../../ui/problem.tsx';

/** One card in the middle. */
export const AuthLayout = () => <Frame widthClass="max-w-[25rem] pt-[max(2rem,10vh)]" />;

/** For a question that is longer than a form: both answers are in sight with it. */
export const WideAuthLayout = () => <Frame widthClass="max-w-[34rem] pt-8" />;

const Frame = ({ widthClass }: { readonly widthClass: string }) => (
  <main className={classNames('mx-auto flex min-h-dvh w-full flex-col px-4 pb-12', widthClass)}>
    <div className="mb-8 flex justify-center">
      <Brand />
    </div>
    <Outlet />
  </main>
);

interface AuthCardProps {
  readonly title: string;
  /** In the place of the title, which is the tab's then. */
  readonly heading?: ReactNode;
  readonly description?: ReactNode;
  readonly below?: ReactNode;
  readonly children: ReactNode;
}

/** One step of getting in: a heading, mostly a form, and the other ways below it. */
export const AuthCard = ({ title, heading = title, description, below, children }: AuthCardProps) => {
  useTitle(title);
  const card = useFirstFocus();
  return (
    <>
      <div ref={card} className="rounded-xl border border-line bg-surface p-6 sm:p-8">
        <h1 tabIndex={-1} className="font-semibold text-xl tracking-tight outline-none">
          {heading}
        </h1>
        {description !== undefined && <p className="mt-1.5 text-muted">{description}</p>}
        <div className="mt-6 space-y-5">{children}</div>
      </div>
      {below !== undefined && <p className="mt-6 text-center text-muted">{below}</p>}
    </>
  );
};

/** Where there is a keyboard one can type at once; elsewhere no keyboard jumps up, and the heading is read. */
const useFirstFocus = () => {
  const card = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const hasKeyboard = matchMedia('(hover: hover)').matches;
    const field = hasKeyboard ? card.current?.querySelector<HTMLElement>('input:not([value]), input[value=""]') : null;
    (field ?? card.current?.querySelector<HTMLElement>('h1'))?.focus({ preventScroll: true });
  }, []);
  return card;
};

interface AuthFormProps {
  readonly onSubmit: (field: (name: string) => string) => void;
  readonly error: unknown;
  /** The error stands at one of the fields. */
  readonly atField: boolean;
  /** What to do about an error that does not. */
  readonly remedy?: ReactNode;
  readonly pending: boolean;
  /** On the button: a verb. */
  readonly action: string;
  readonly children: ReactNode;
}

/** The form of one step. */
export const AuthForm = ({ onSubmit, error, atField, remedy, pending, action, children }: AuthFormProps) => (
  <FieldsForm onSubmit={onSubmit} error={error} pending={pending} className="space-y-5">
    {error != null && !atField && <Problem error={error}>{remedy}</Problem>}
    {children}
    <Button type="submit" kind="primary" pending={pending} className="h-10! w-full">
      {action}
    </Button>
  </FieldsForm>
);

const Anchor = (props: ComponentProps<'a'>) => (
  // oxlint-disable-next-line jsx-a11y/anchor-has-content -- its content comes with the rest
  <a {...props} className="rounded-sm font-medium text-accent underline-offset-4 hover:underline" />
);

/** A link inside of text, to another page before sign-in. */
export const TextLink = createLink(Anchor);

const LOCAL = new Set(['localhost', '127.0.0.1', '[::1]']);

/** Who tries the platform out on the own machine has no mailbox to look into. */
export const LocalMailHint = () =>
  LOCAL.has(window.location.hostname) ? (
    <p className="border-line border-t pt-4 text-muted text-sm">
      Running the server on this computer? The link is also printed in the server's terminal.
    </p>
  ) : null;

/**
 * What a link brought along. It leaves the address bar at once, as histories and screens keep what is shown there; the entry of
 * the history keeps it, so that a page that is loaded again still has it.
 */
export const useFromLink = (name: 'email' | 'invite', inAddress: string | undefined): string => {
  const { history } = useRouter();
  const { state } = useLocation();
  const [brought] = useState(inAddress ?? state[name] ?? '');
  useEffect(() => {
    if (inAddress === undefined) return;
    const { pathname, search } = history.location;
    const rest = new URLSearchParams(search);
    rest.delete(name);
    history.replace(rest.size === 0 ? pathname : `${pathname}?${rest.toString()}`, { [name]: inAddress });
  }, [name, inAddress, history]);
  return brought;
};

/** Whoever is signed in, here or in another tab, has nothing to do on the pages before it. */
export const useLeaveWhenSignedIn = (next?: string): void => {
  const { phase } = useSessionState();
  const { history } = useRouter();
  useEffect(() => {
    if (phase === 'signed-in') history.replace(nextPath(next));
  }, [phase, history, next]);
};

/** The token of a link from a mail. It leaves the address bar at once: histories and screens keep what is shown there. */
export const useLinkToken = (inAddress: string | undefined): string => {
  const [token] = useState(inAddress ?? '');
  const { history } = useRouter();
  useEffect(() => {
    if (inAddress !== undefined) history.replace(history.location.pathname);
  }, [inAddress, history]);
  return token;
};

interface NewPasswordFieldProps {
  readonly label: string;
  /** null: the password breaks no rule. */
  readonly error: string | null;
}

export const NewPasswordField = (props: NewPasswordFieldProps) => (
  <PasswordField {...props} name="password" autoComplete="new-password" required hint="At least 8 characters" />
);
