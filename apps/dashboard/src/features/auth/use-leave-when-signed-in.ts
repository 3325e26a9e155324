// Whoever is signed in, here or in another tab, has nothing to do before the door.
import { useRouter } from '@tanstack/react-router';
import { useEffect } from 'react';
import { useSessionState } from '../../app/app-context.tsx';
import { nextPath } from '../../app/next-path.ts';

export const useLeaveWhenSignedIn = (next?: string): void => {
  const { phase } = useSessionState();
  const { history } = useRouter();
  useEffect(() => {
    if (phase === 'signed-in') history.replace(nextPath(next));
  }, [phase, history, next]);
};
