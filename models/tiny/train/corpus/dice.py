"""The one source of randomness of the corpus: the same seed draws the same conversations."""

import random


class Dice(random.Random):
    """Draws with names that read well where they are used."""

    # How often a person opens a question with "Please tell me: " and the like.
    opening_chance = 0.12

    def pick(self, *options):
        """One of the arguments, or one of the only argument, a sequence."""
        return self.choice(options[0] if len(options) == 1 else options)

    def chance(self, probability):
        return self.random() < probability

    def pick_weighted(self, options, weights):
        return self.choices(options, weights)[0]
