// Components and hooks shared by the signed-out pages: the page frame, the card of a step, its form, and the handling of links from
// emails.
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

/** Layout of the signed-out pages: a narrow, centered card. */
export const AuthLayout = () => <Frame widthClass="max-w-[25rem] pt-[max(2rem,10vh)]" />;

/** Layout of the consent page. Wider than the other signed-out pages, so that the question and both answers fit on the screen. */
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
  /** Heading shown instead of the title. The title then appears only in the browser tab. */
  readonly heading?: ReactNode;
  readonly description?: ReactNode;
  readonly below?: ReactNode;
  readonly children: ReactNode;
}

/** A card with one step of signing in or up: a heading, usually a form, and links to related pages below. */
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

/**
 * Focuses the first empty field on devices with a hover pointer, such as desktop computers. On touch devices the heading gets the focus
 * instead, so that no on-screen keyboard opens.
 */
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
  /** True if a form field already shows the error, so that the form does not repeat the error. */
  readonly atField: boolean;
  /** Suggested action for an error that is not shown at a field. */
  readonly remedy?: ReactNode;
  readonly pending: boolean;
  /** Label of the submit button: a verb. */
  readonly action: string;
  readonly children: ReactNode;
}

/** The form of one sign-in or sign-up step. */
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

/** An inline link to another signed-out page. */
export const TextLink = createLink(Anchor);

const LOCAL = new Set(['localhost', '127.0.0.1', '[::1]']);

/** Hint for a server on localhost, where users have no mailbox for the emails. */
export const LocalMailHint = () =>
  LOCAL.has(window.location.hostname) ? (
    <p className="border-line border-t pt-4 text-muted text-sm">
      Running the server on this computer? The link is also printed in the server's terminal.
    </p>
  ) : null;

/**
 * Returns a query parameter of an opened link and removes the parameter from the address bar, because histories and screenshots expose
 * URLs. The state of the history entry keeps the value, so that a reload does not lose it.
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

/** Leaves a signed-out page as soon as the user is signed in, in this tab or another tab. */
export const useLeaveWhenSignedIn = (next?: string): void => {
  const { phase } = useSessionState();
  const { history } = useRouter();
  useEffect(() => {
    if (phase === 'signed-in') history.replace(nextPath(next));
  }, [phase, history, next]);
};

/**
 * Returns the token of a link from an email, and removes the token from the address bar immediately, because histories and screenshots
 * expose URLs.
 */
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
  /** Error message of the field. Null if the password is acceptable. */
  readonly error: string | null;
}

export const NewPasswordField = (props: NewPasswordFieldProps) => (
  <PasswordField {...props} name="password" autoComplete="new-password" required hint="At least 8 characters" />
);
