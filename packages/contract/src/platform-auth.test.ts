import { describe, expect, it } from 'vitest';
import { credentials, emailOnly, registration, userChange } from './platform-auth.ts';

const named = (display_name: unknown) => userChange.safeParse({ display_name });

describe('a display name', () => {
  it('is trimmed, and becomes null if nothing is left', () => {
    expect(userChange.parse({ display_name: '  Ann ' })).toEqual({ display_name: 'Ann' });
    expect(userChange.parse({ display_name: ' \n' })).toEqual({ display_name: null });
    expect(userChange.parse({ display_name: null })).toEqual({ display_name: null });
  });

  it('has at most 100 characters, counted by code points', () => {
    expect(named('😀'.repeat(100)).success).toBe(true);
    expect(named('a'.repeat(101)).success).toBe(false);
    expect([named(7).success, named(undefined).success, named(['a']).success]).toEqual([false, false, false]);
  });
});

describe('request bodies for sign-in', () => {
  it('accept unknown fields and drop them', () => {
    expect(credentials.parse({ email: 'a@b', password: 'x', otp: 1 })).toEqual({ email: 'a@b', password: 'x' });
    expect(registration.parse({ email: 'a@b', password: 'x', plan: 'payg' })).toEqual({ email: 'a@b', password: 'x' });
  });

  it.each([{}, { email: null }, { email: 1 }, { email: ['a@b'] }, []])('need a string as email address: %j', (body) => {
    expect(emailOnly.safeParse(body).success).toBe(false);
  });
});
