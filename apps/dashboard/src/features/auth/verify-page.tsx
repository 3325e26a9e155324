// Page opened after the link in a verification email. The browser used for sign-up already has a session by then. The page can also
// verify a token in its own URL.
import { useMutation } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';
import { useApi, useApp } from '../../api/app-context.tsx';
import { Notice } from '../../ui/badge.tsx';
import { buttonClass } from '../../ui/button.tsx';
import { Spinner } from '../../ui/icon.tsx';
import { Problem } from '../../ui/problem.tsx';
import { sentence } from '../../ui/problem-text.ts';
import { AuthCard, TextLink, useLeaveWhenSignedIn, useLinkToken } from './layout.tsx';

const route = getRouteApi('/signed-out/verify');

export const VerifyPage = () => {
  const { token, signed_in: isSignedIn } = route.useSearch();
  return isSignedIn === undefined ? <Verify inAddress={token} /> : <Enter />;
};

/** Signs in after the platform has set a session cookie, because this tab has no access token yet. */
const Enter = () => {
  const { session } = useApp();
  useLeaveWhenSignedIn();
  const entry = useMutation({ mutationFn: () => session.renew() });
  useOnce(entry.mutate);
  return (
    <AuthCard title="Email verified">
      {entry.error === null ? <Waiting text="Signing you in" /> : <Done text="Your email is verified." />}
    </AuthCard>
  );
};

const Waiting = ({ text }: { readonly text: string }) => (
  <p role="status" className="flex items-center gap-2.5 text-muted">
    <Spinner /> {text}
  </p>
);

const Done = ({ text }: { readonly text: string }) => (
  <>
    <Notice tone="good" live>
      {text}
    </Notice>
    <Link to="/login" className={buttonClass('primary', 'medium', 'h-10! w-full')}>
      Sign in
    </Link>
  </>
);

const Verify = ({ inAddress }: { readonly inAddress: string | undefined }) => {
  const token = useLinkToken(inAddress);
  const { data, error } = useVerification(token);
  return (
    <AuthCard
      title="Verify your email"
      below={
        data === undefined && (
          <>
            Already verified? <TextLink to="/login">Sign in</TextLink>
          </>
        )
      }
    >
      {data !== undefined && <Done text={sentence(data.message)} />}
      {error !== null && (
        <Problem error={error}>
          <TextLink to="/check-mail">Resend email</TextLink>
        </Problem>
      )}
      {data === undefined && error === null && <Waiting text="Verifying your email" />}
    </AuthCard>
  );
};

/** Sends the verification token exactly once, regardless of renders, because the platform accepts a token only once. */
const useVerification = (token: string) => {
  const api = useApi();
  const verification = useMutation({ mutationFn: () => api.verifyEmail(token) });
  useOnce(verification.mutate);
  return verification;
};

const useOnce = (act: () => void): void => {
  const done = useRef(false);
  useEffect(() => {
    if (done.current) return;
    done.current = true;
    act();
  }, [act]);
};
