/**
 * Rendezvous hashing: a conversation ranks targets by a hash of both names, so that it comes to the same
 * one as long as that is there, on every gateway and after every restart, and nobody remembers anything.
 * A target that goes takes only its own conversations along, and gets the same ones back.
 */

/** A number in (0, 1) that is the same for the same two texts. */
export function drawn(conversation: string, name: string): number {
  let hash = 0x811c9dc5;
  hash = fnv(hash, conversation);
  hash = fnv(hash, '\n');
  hash = fnv(hash, name);
  // FNV leaves the high bits of short texts alike; these are murmur3's last steps.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  hash ^= hash >>> 16;
  return ((hash >>> 0) + 0.5) / 2 ** 32;
}

function fnv(from: number, text: string): number {
  let hash = from;
  for (let i = 0; i < text.length; i += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  }
  return hash;
}

/**
 * How good the draw is for something of that weight: of several the highest wins, each as often as its
 * weight says. @param draw in [0, 1).
 */
export function weightedScore(draw: number, weight: number): number {
  return weight / -Math.log(draw);
}
