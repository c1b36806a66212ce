"""What each check of a campaign is worth on a compiler: one campaign for every pair, compared by their findings."""
