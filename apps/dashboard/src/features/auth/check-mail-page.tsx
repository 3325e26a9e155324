// Page shown after sign-up. Tells the user to open the link in the verification email, and can send the email again.
import { useLocation } from '@tanstack/react-router';
import { useState } from 'react';
import { useApi } from '../../api/app-context.tsx';
import { Notice } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { TextField } from '../../ui/field.tsx';
import { useNow } from '../../ui/hooks.ts';
import { MaybeProblem } from '../../ui/problem.tsx';
import { fieldProblem, sentence } from '../../ui/problem-text.ts';
import { useAskedMail } from './asked-mail.ts';
import { AuthCard, AuthForm, LocalMailHint, TextLink } from './layout.tsx';

/** Minimum pause between two emails to the same address. */
const PAUSE_MS = 30_000;

export const CheckMailPage = () => {
  const { state } = useLocation();
  // The address is kept from the first render, because during a navigation useLocation already returns the next page's state.
  const [email] = useState(state.email);
  return email === undefined || email === '' ? <AskForAddress /> : <MailSent email={email} />;
};

const MailSent = ({ email }: { readonly email: string }) => {
  const resend = useResend();
  // The pause starts at once, because signing up has just sent an email.
  const [pause, begin] = usePause(PAUSE_MS, true);
  return (
    <AuthCard
      title="Check your email"
      description={
        <>
          We sent a link to <strong className="break-all font-medium text-ink">{email}</strong>. Open it within 24
          hours.
        </>
      }
      below={
        <>
          Already verified?{' '}
          <TextLink to="/login" state={{ email }}>
            Sign in
          </TextLink>
        </>
      }
    >
      {resend.data !== undefined && (
        <Notice tone="good" live>
          {sentence(resend.data.message)}
        </Notice>
      )}
      <MaybeProblem error={resend.error} />
      <Button
        className="h-10! w-full"
        pending={resend.isPending}
        disabled={pause > 0}
        onClick={() => resend.mutate(email, { onSuccess: begin })}
      >
        {pause > 0 ? `Resend in ${pause} s` : 'Resend email'}
      </Button>
      <p className="text-muted text-sm">
        No email? Check your spam folder. Wrong address? <TextLink to="/signup">Change it</TextLink>
      </p>
      <LocalMailHint />
    </AuthCard>
  );
};

/** Form for the email address, shown if the user did not come from the sign-up page. */
const AskForAddress = () => {
  const resend = useResend();
  const [sentTo, setSentTo] = useState<string | null>(null);
  const atEmail = fieldProblem(resend.error, 'email');
  if (sentTo !== null) return <MailSent email={sentTo} />;
  return (
    <AuthCard
      title="Resend verification email"
      description="Enter the email address you signed up with."
      below={
        <>
          Already verified? <TextLink to="/login">Sign in</TextLink>
        </>
      }
    >
      <AuthForm
        action="Send email"
        error={resend.error}
        atField={atEmail !== null}
        pending={resend.isPending}
        onSubmit={(field) => resend.mutate(field('email'), { onSuccess: () => setSentTo(field('email').trim()) })}
      >
        <TextField label="Email" name="email" type="email" autoComplete="email" required error={atEmail} />
      </AuthForm>
    </AuthCard>
  );
};

const useResend = () => {
  const api = useApi();
  return useAskedMail((email) => api.resendVerification(email));
};

/** Returns the remaining seconds of a pause, and a function that starts the pause again. */
const usePause = (ms: number, begun: boolean): readonly [number, () => void] => {
  const [until, setUntil] = useState(() => (begun ? Date.now() + ms : 0));
  const left = useNow((now) => Math.min(ms / 1000, Math.max(0, Math.ceil((until - now) / 1000))));
  return [left, () => setUntil(Date.now() + ms)];
};
