// The seconds that are left of a pause.
import { useState } from 'react';
import { useNow } from '../../ui/now.ts';

export const usePause = (ms: number, begun: boolean): readonly [number, () => void] => {
  const [until, setUntil] = useState(() => (begun ? Date.now() + ms : 0));
  const left = useNow((now) => Math.min(ms / 1000, Math.max(0, Math.ceil((until - now) / 1000))));
  return [left, () => setUntil(Date.now() + ms)];
};
